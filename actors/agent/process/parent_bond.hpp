/// How a child process ends with those who started it, however they end.
#pragma once

#include "base/service_loop.hpp"
#include "base/unique_fd.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <sys/types.h>

namespace dlrun::agent {

/// The option that precedes the descriptor's number in the child's arguments.
inline constexpr std::string_view lifeline_option = "--lifeline-fd";

/// To be called first thing in a child: the kernel kills this process (SIGKILL) when the thread
/// that spawned it ends, which for a child of process_spawner is when the parent dies or deletes
/// its spawner.
/// @param expected_parent the parent's pid, as it wrote it into the bootstrap data.
/// @returns role_lost when the parent is gone already: the caller must exit.
result<void> bind_to_parent(pid_t expected_parent);

/// The two ends of a lifeline. The root of a run alone keeps `root_end`; every process below it,
/// grandchildren too, inherits `leaf_end` (child_command.inherit).
struct lifeline_ends {
  base::unique_fd root_end;
  base::unique_fd leaf_end;
};
result<lifeline_ends> make_lifeline();

/// Watches a lifeline's leaf end: when the root dies the kernel closes its end, and every process
/// that watches knows at once, also those whose own parent lives on. bind_to_parent() cannot do
/// that.
class lifeline final : base::polled_service {
public:
  /// Calls `root_gone` once, on the lifeline's thread, when the root's end is closed. Usually it
  /// ends the process.
  /// @returns bad_usage when `leaf_end` is not the read end of a pipe.
  static result<std::unique_ptr<lifeline>> watch(base::unique_fd leaf_end, std::function<void()> root_gone);
  /// Stops watching. Not to be called from `root_gone`.
  ~lifeline() override = default;

private:
  lifeline(base::unique_fd leaf_end, std::function<void()> root_gone);

  std::chrono::steady_clock::time_point watch(std::vector<pollfd>& fds) override;
  void serve(std::span<const pollfd> fds) override;

  base::unique_fd leaf_end_; // empty when it has told; the thread's own
  std::function<void()> root_gone_;
  base::service_loop thread_;
};

} // namespace dlrun::agent
