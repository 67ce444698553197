/// wake_event: lets any thread end another thread's poll().
#pragma once

#include "base/os_error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <sys/eventfd.h>

namespace dlrun::base {

/// An eventfd. Any thread may notify(); one thread polls fd() and calls drain().
class wake_event {
public:
  static result<wake_event> create() {
    unique_fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) return fail_errno("cannot create an eventfd (raise the limit of open files: ulimit -n)");
    return wake_event(std::move(fd));
  }

  int fd() const { return fd_.get(); }
  /// Never blocks; a full counter already wakes the poller.
  void notify() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
  }
  void drain() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
  }

private:
  explicit wake_event(unique_fd fd)
      : fd_(std::move(fd)) {}
  unique_fd fd_;
};

} // namespace dlrun::base
