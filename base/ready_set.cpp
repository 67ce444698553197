#include "base/ready_set.hpp"

#include "base/os_error.hpp"

#include <poll.h>

namespace dlrun::base {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);

result<ready_set> ready_set::create() {
  unique_fd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll)
    return fail_errno("cannot create an epoll descriptor (raise the limit of open files: ulimit -n)");
  return ready_set{std::move(epoll)};
}

result<void> ready_set::watch(int descriptor, short events, watched& of) {
  if (of.events == events) return {};
  epoll_event wanted{};
  wanted.events = static_cast<std::uint32_t>(events);
  wanted.data.ptr = &of;
  const int how = of.events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), how, descriptor, &wanted) != 0)
    return fail_errno("cannot wait for a descriptor");
  of.events = events;
  return {};
}

std::span<ready_set::watched* const> ready_set::take() {
  ready_.clear();
  const int count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  for (int i = 0; i < count; ++i) {
    auto* one = static_cast<watched*>(events_[static_cast<std::size_t>(i)].data.ptr);
    one->ready = static_cast<short>(events_[static_cast<std::size_t>(i)].events);
    ready_.push_back(one);
  }
  return ready_;
}

} // namespace dlrun::base
