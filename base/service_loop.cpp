#include "base/service_loop.hpp"

#include "base/os_error.hpp"

namespace dlrun::base {

result<void> service_loop::start(const std::string& thread_name, std::string_view owner,
                                 polled_service& served) {
  auto wake = wake_event::create();
  if (!wake) return tl::unexpected(wake.error());
  wake_.emplace(std::move(*wake));
  try {
    thread_ = start_service_thread(thread_name, [this, &served] { run(served); });
  } catch (const std::system_error& e) {
    return fail_errno(fmt::format("cannot start {}'s thread", owner), e.code().value());
  }
  return {};
}

void service_loop::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake();
  thread_.join();
}

void service_loop::run(polled_service& served) const {
  std::vector<pollfd> fds;
  while (true) {
    fds.assign({{wake_->fd(), POLLIN, 0}});
    const auto deadline = served.watch(fds);
    poll_until(fds, deadline);
    if (stopping_) break;
    if (fds[0].revents != 0) wake_->drain();
    served.serve(std::span(fds).subspan(1));
  }
  served.end();
}

} // namespace dlrun::base
