/// unique_fd: the owner of one file descriptor.
#pragma once

#include <unistd.h>
#include <utility>

namespace dlrun::base {

/// Owns a file descriptor and closes it. Move only; -1 means empty.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd)
      : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept
      : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  unique_fd(const unique_fd&) = delete;
  unique_fd& operator=(const unique_fd&) = delete;
  ~unique_fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives the descriptor to the caller, who closes it.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_ = -1;
};

} // namespace dlrun::base
