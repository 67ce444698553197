/// How others wait for the hosts of a job.
#pragma once

#include "actors/agent/hosted_roles.hpp"
#include "actors/protocol/time.hpp"

#include <chrono>
#include <condition_variable>
#include <dlrun/error.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Shown by the agent, read by the thread of the run. Thread-safe.
class hosts_wait {
public:
  void show(const hosted_roles& now);
  /// From now on nobody waits for hosts, and it is not looked who is awaited.
  void note_begun();
  /// A host cannot be started.
  void fail_with(const std::string& why);

  /// Blocks until all hosts are there, or one of them cannot be started. @returns bad_usage with
  /// the reason, timed_out naming those that are not there yet.
  result<void> wait_until_there(std::chrono::milliseconds patience);
  /// Why the job does not begin, though all hosts that are started from here are there: it waits
  /// for others that join; "" otherwise.
  std::string awaited() const;
  /// A host wanted to join, and was not let in. It tries again twice a second, as long as it may.
  void note_turned_away(const std::string& host, const std::string& address, protocol::time_point now);
  /// The addresses from which hosts, by name, wanted that just now.
  std::map<std::string, std::string> turned_away(protocol::time_point now) const;
  /// The agent of that host follows a later root of the run.
  void note_moved_on(const std::string& host);
  /// Why another root is the run's; nothing while this one is, as far as hosts tell.
  std::optional<std::string> superseded() const;
  /// Once dismissed: blocks until all hosts have gone, whoever started their agents.
  void wait_until_gone(std::chrono::milliseconds patience);

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> missing_; ///< of those that are started from here
  std::string awaited_;
  bool has_begun_ = false;
  std::size_t staying_ = 0;
  std::string failure_;
  struct refusal {
    std::string address;
    protocol::time_point at;
  };
  std::map<std::string, refusal> turned_away_; ///< by host
  std::optional<std::string> superseded_;
};

} // namespace dlrun::agent
