#include "actors/agent/process/parent_bond.hpp"

#include "base/os_error.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

namespace dlrun::agent {

result<void> bind_to_parent(pid_t expected_parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return base::fail_errno("cannot ask for a signal at the parent's death");
  // The parent may have died before the call above: then no signal will ever come.
  if (const pid_t parent = ::getppid(); parent != expected_parent)
    return fail(error_code::role_lost,
                fmt::format("the parent process {} is gone (the parent is now {})", expected_parent, parent));
  return {};
}

result<lifeline_ends> make_lifeline() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::fail_errno("cannot create the lifeline pipe");
  return lifeline_ends{base::unique_fd(ends[1]), base::unique_fd(ends[0])};
}

lifeline::lifeline(base::unique_fd leaf_end, std::function<void()> root_gone)
    : leaf_end_(std::move(leaf_end))
    , root_gone_(std::move(root_gone)) {}

result<std::unique_ptr<lifeline>> lifeline::watch(base::unique_fd leaf_end, std::function<void()> root_gone) {
  struct stat file {};
  const bool readable = (::fcntl(leaf_end.get(), F_GETFL) & O_ACCMODE) == O_RDONLY;
  if (::fstat(leaf_end.get(), &file) != 0 || !S_ISFIFO(file.st_mode) || !readable)
    return fail(error_code::bad_usage,
                fmt::format("descriptor {} is not the read end of a lifeline", leaf_end.get()));
  std::unique_ptr<lifeline> made(new lifeline(std::move(leaf_end), std::move(root_gone)));
  if (auto ok = made->thread_.start("dlrun-lifeline", "the lifeline", *made); !ok)
    return tl::unexpected(ok.error());
  return made;
}

std::chrono::steady_clock::time_point lifeline::watch(std::vector<pollfd>& fds) {
  // No events asked for: POLLHUP comes anyway, and bytes in the pipe mean nothing.
  fds.push_back({leaf_end_.get(), 0, 0});
  return std::chrono::steady_clock::time_point::max();
}

void lifeline::serve(std::span<const pollfd> fds) {
  if (fds[0].revents == 0) return;
  leaf_end_.reset();
  root_gone_();
}

} // namespace dlrun::agent
