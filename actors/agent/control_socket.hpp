/// How `dlrun status` and `dlrun stop` reach a running job: a Unix socket of the root process,
/// named in the run folder.
#pragma once

#include "base/listener.hpp"
#include "base/service_loop.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace dlrun::agent {

/// `agent.json` in the run folder: `{"pid":N,"socket":"..."}`.
inline constexpr auto agent_file = "agent.json";

/// Answers one-packet requests of processes of the same user, from its own thread.
class control_server final : base::polled_service {
public:
  /// Answer to a request; called on the server's thread.
  using handler = std::function<std::string(const std::string& request)>;

  /// Listens on a random abstract address and writes it into `run_dir`/agent.json.
  static result<std::unique_ptr<control_server>> start(const std::filesystem::path& run_dir, handler answer);
  /// Stops listening and removes the file.
  ~control_server() override;

private:
  control_server(base::unique_fd socket, std::filesystem::path file, handler answer);
  std::chrono::steady_clock::time_point watch(std::vector<pollfd>& fds) override;
  void serve(std::span<const pollfd> fds) override;
  void answer(int connection) const;

  base::listener listener_;
  std::filesystem::path file_;
  handler handler_;
  base::service_loop thread_;
};

/// Asks the root of the run in `run_dir`. @returns bad_usage when it is no run folder, role_lost
/// when the root is gone (without having ended the run in order), timed_out when it does not
/// answer.
result<std::string> ask_root(const std::filesystem::path& run_dir, const std::string& request,
                             std::chrono::milliseconds deadline = std::chrono::milliseconds(2000));

} // namespace dlrun::agent
