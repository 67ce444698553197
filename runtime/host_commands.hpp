/// Starts the agents of other hosts, by the command that the list of hosts names.
#pragma once

#include "actors/agent/process/process_spawner.hpp"
#include "actors/agent/routed_launcher.hpp"
#include "runtime/hosts_plan.hpp"

#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace dlrun::runtime {

/// Runs the commands that start the agents of other hosts. Thread-safe. Output of a command goes to
/// logs/host-NAME.log in the run folder, which is kept short (command_log.hpp); when the command
/// ends, its last line there is the reason.
class host_commands final : public agent::host_starter {
public:
  /// Makes the bundle that a host's agent reads (written_bundle()), for each start anew.
  using bundle_maker = std::function<result<std::string>(const spec::HostSpec& host)>;

  static result<std::shared_ptr<host_commands>> create(hosts_plan plan, std::filesystem::path run_dir,
                                                       bundle_maker make_bundle);
  /// Kills commands that still run.
  ~host_commands() override;

  void run(const std::string& host, std::function<void(std::string why)> ended) override;
  void kill(const std::string& host) override { signal(host, SIGKILL); }
  void ask_to_end(const std::string& host) override { signal(host, SIGTERM); }
  /// Waits until no command runs, at most so long.
  void wait_for_end(std::chrono::seconds patience);

private:
  host_commands(hosts_plan plan, std::filesystem::path run_dir, bundle_maker make_bundle);
  agent::child_command make_child(const spec::HostSpec& host, int input, int output) const;
  std::filesystem::path log_of(const std::string& host) const;
  void signal(const std::string& host, int number);
  /// @returns where its output begins in its log
  std::uintmax_t forget(const std::string& host, agent::child_id id);
  void watch_logs();

  const hosts_plan plan_;
  const std::filesystem::path run_dir_;
  const bundle_maker make_bundle_;
  std::mutex mutex_;
  std::condition_variable ended_;
  struct command {
    agent::child_id id;
    std::uintmax_t begins; ///< its output, in its log
  };
  std::map<std::string, command> running_; ///< guarded by mutex_
  bool is_over_ = false;                   ///< likewise
  std::thread watcher_;
  std::unique_ptr<agent::process_spawner> spawner_; ///< last: its thread uses the members above
};

} // namespace dlrun::runtime
