#include "base/listener.hpp"

#include <cerrno>
#include <sys/socket.h>

namespace dlrun::base {

void listener::accept_waiting(time_point now, const std::function<bool(unique_fd)>& take) {
  while (true) {
    unique_fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      if (!take(std::move(connection))) return;
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) again_ = now + accept_pause;
    return;
  }
}

} // namespace dlrun::base
