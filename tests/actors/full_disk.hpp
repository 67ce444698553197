/// A disk that is full, as far as the files of this process go.
#pragma once

#include <csignal>
#include <sys/resource.h>

namespace dlrun::test {

/// No file of this process grows beyond so many bytes while it lives.
class full_disk {
public:
  explicit full_disk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;

private:
  rlimit before_{};
};

} // namespace dlrun::test
