/// The connection of `dlrun doctor` to an agent that examines its host.
#pragma once

#include "actors/agent/process/process_spawner.hpp"
#include "base/unique_fd.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// Starts an agent on a host and asks it what `dlrun doctor` wants to know. For one thread. Its
/// destructor ends the agent.
class examined_host {
public:
  /// Runs `words`, the command of an agent, which is given `bundle` as it reads it: what it has not
  /// read yet goes on while hear() waits. @returns system.
  static result<std::unique_ptr<examined_host>>
  start(agent::process_spawner& spawner, std::vector<std::string> words, const std::string& bundle);
  ~examined_host();
  examined_host(const examined_host&) = delete;
  examined_host& operator=(const examined_host&) = delete;

  /// The next message of the agent. @returns timed_out, or bad_usage with the last line that the
  /// command wrote to its error output.
  result<nlohmann::json> hear(std::chrono::milliseconds patience);
  /// Asks `question`, then waits as hear() does.
  result<nlohmann::json> ask(const std::string& question, std::chrono::milliseconds patience);

private:
  explicit examined_host(agent::process_spawner& spawner)
      : spawner_{spawner} {}
  std::string last_complaint() const;
  void send_waiting();
  result<void> wait(std::chrono::steady_clock::time_point due);

  agent::process_spawner& spawner_;
  agent::child_id child_{};
  base::unique_fd to_, from_, complaints_;
  std::string waiting_; ///< for the agent, which has not read it yet
  std::string heard_;
};

} // namespace dlrun::runtime
