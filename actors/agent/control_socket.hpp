/// How `dlrun status`, `stop`, `scale` and `logs` reach a running job: a Unix socket of the root
/// process, in the run folder. Processes of every network namespace of the host find it there, as
/// those of containers that share the folder do. `agent.json` beside it says where it is:
/// `{"pid":N,"host":"...","boot":"...","socket":"..."}`, with the name of the root's host and the
/// number that its kernel gave itself when it began.
#pragma once

#include "base/listener.hpp"
#include "base/service_loop.hpp"
#include "base/unique_fd.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::agent {

/// An answer to be given once, at once or later, on any thread. Where nobody gives it the asker is
/// told that the run is ending.
class control_reply {
public:
  explicit control_reply(base::unique_fd connection);
  /// Where it cannot be sent the asker is told why.
  void operator()(std::string_view answer) const;
  /// In place of an answer: why there is none, though the run goes on.
  void refuse(std::string_view why) const;

private:
  class asker;
  std::shared_ptr<asker> asker_;
};

/// Answers one-packet requests of processes of the same user, from its own thread.
class control_server final : base::polled_service {
public:
  /// Sees to it that a request is answered; called on the server's thread.
  using handler = std::function<void(const std::string& request, control_reply reply)>;

  /// Listens at `run_dir`/control.sock, and where the file system takes no sockets, at a random
  /// abstract address of this network namespace. Writes `run_dir`/agent.json. @returns disk_full,
  /// and then nothing is left of it; system.
  static result<std::unique_ptr<control_server>> start(const std::filesystem::path& run_dir, handler answer);
  /// Stops listening and removes both files.
  ~control_server() override;

private:
  control_server(base::unique_fd socket, base::unique_fd folder, handler answer);
  std::chrono::steady_clock::time_point watch(std::vector<pollfd>& fds) override;
  void serve(std::span<const pollfd> fds) override;
  void answer(base::unique_fd connection) const;

  base::listener listener_;
  base::unique_fd folder_; ///< of the run
  handler handler_;
  base::service_loop thread_;
};

/// Asks the root of the run in `run_dir`. @returns bad_usage when it is no run folder, that of a
/// root on another host, or of one that has ended the run in order or is about to; role_lost when
/// the root is gone without that, which names no way out; timed_out when it does not answer; system
/// when it cannot, and says so or ends the connection.
result<std::string> exchange_with_root(const std::filesystem::path& run_dir, const std::string& request,
                                       std::chrono::milliseconds deadline = std::chrono::milliseconds(2000));

} // namespace dlrun::agent
