/// Copies the logs of roles that ran on other hosts into the run folder, when the job has ended.
#pragma once

#include "actors/agent/log_files.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// A host with logs of the job.
struct logging_host {
  std::string host;
  std::string folder;                 ///< of the run, there
  protocol::host_agent_actor agent{}; ///< null: that host is away
};

/// The logs of a host that could not be copied, or not all of them.
struct staying_logs {
  std::string host, folder;
  std::string why;
};

/// What the user is told of them.
std::vector<protocol::job_event> tell_staying(const std::vector<staying_logs>& logs);

/// One host after the other, one log after the other, of each a few parts at a time. What is not
/// answered is asked for again, a few times; a host that fails in one is left with the others that
/// it has. All together it takes no longer than `log_patience`. Called by its actor `self` only,
/// which outlives this and waits for the disk.
class log_collector {
public:
  using pointer = protocol::agent_actor::base*;
  using done_handler = std::function<void(const std::vector<staying_logs>&)>;
  static constexpr std::chrono::seconds log_patience{15};

  log_collector(pointer self, std::filesystem::path run_dir)
      : self_(self)
      , run_dir_(std::move(run_dir)) {}

  /// Once. `done` is called once, at once where there is nothing to copy.
  void collect(std::vector<logging_host> hosts, done_handler done);

private:
  void begin_host();
  template <class Answer, class Wanted>
  void ask(const Wanted& wanted, std::function<void(const Answer&)> on_answer);
  void on_listing(const protocol::log_listing& listing);
  void begin_log();
  void ask_for_next_part();
  void on_part(const protocol::log_part_wanted& wanted, const protocol::log_part& part);
  void finish_log();
  void end_host(std::string why);
  void end_all(const char* why);
  const logging_host& current() const { return hosts_[host_]; }

  pointer self_;
  std::filesystem::path run_dir_;
  std::vector<logging_host> hosts_;
  std::size_t host_ = 0; ///< the one whose logs are being copied
  std::vector<protocol::kept_log> logs_;
  std::size_t log_ = 0;    ///< of these, the one that is being copied
  std::uint64_t turn_ = 0; ///< answers to questions of an earlier one come too late
  std::optional<log_intake> intake_;
  std::vector<staying_logs> staying_;
  done_handler done_; ///< empty once it was called
};

} // namespace dlrun::agent
