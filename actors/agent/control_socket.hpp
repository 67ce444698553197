/// How `dlrun status` and `dlrun stop` reach a running job: a Unix socket of the root process, named in the
/// run folder.
#pragma once

#include "base/unique_fd.hpp"
#include "base/wake_event.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace dlrun::agent {

/// `agent.json` in the run folder: `{"pid":N,"socket":"..."}`.
inline constexpr auto agent_file = "agent.json";

/// Answers one-packet requests of processes of the same user, from its own thread.
class control_server {
public:
  /// Answer to a request; called on the server's thread.
  using handler = std::function<std::string(const std::string& request)>;

  /// Listens on a random abstract address and writes it into `run_dir`/agent.json.
  static result<std::unique_ptr<control_server>> start(const std::filesystem::path& run_dir, handler answer);
  /// Stops listening and removes the file.
  ~control_server();
  control_server(const control_server&) = delete;
  control_server& operator=(const control_server&) = delete;

private:
  control_server(base::unique_fd socket, base::wake_event stop, std::filesystem::path file, handler answer);
  void run();
  void serve(int connection) const;

  base::unique_fd socket_;
  base::wake_event stop_;
  std::filesystem::path file_;
  handler answer_;
  std::thread thread_;
};

/// Asks the root of the run in `run_dir`. @returns bad_usage when it is no run folder, role_lost when the
/// root is gone (without having ended the run in order), timed_out when it does not answer.
result<std::string> ask_root(const std::filesystem::path& run_dir, const std::string& request,
                             std::chrono::milliseconds deadline = std::chrono::milliseconds(2000));

} // namespace dlrun::agent
