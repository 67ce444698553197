#include "runtime/loopback_check.hpp"

#include "base/unique_fd.hpp"
#include "job/choices.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>

namespace dlrun::runtime {
namespace {

constexpr int patience_ms = 1000;

sockaddr* as_address(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

/// @returns 0, or the errno of what went wrong.
int connect_to_itself() {
  const base::unique_fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const base::unique_fd caller{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!listener || !caller || ::bind(listener.get(), as_address(address), size) != 0 ||
      ::listen(listener.get(), 1) != 0 || ::getsockname(listener.get(), as_address(address), &size) != 0)
    return errno;
  if (::connect(caller.get(), as_address(address), size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd watched{caller.get(), POLLOUT, 0};
  if (::poll(&watched, 1, patience_ms) <= 0) return ETIMEDOUT;
  int wrong = 0;
  socklen_t length = sizeof wrong;
  return ::getsockopt(caller.get(), SOL_SOCKET, SO_ERROR, &wrong, &length) == 0 ? wrong : errno;
}

} // namespace

result<void> check_loopback(const spec::JobSpec& spec) {
  if (job::tensor_channel_of(spec) != job::tensor_channel::tcp) return {};
  const int wrong = connect_to_itself();
  if (wrong == 0) return {};
  return fail(
      error_code::system,
      fmt::format("cluster.tensor_channel: with \"tcp\" the processes of this host call each other at "
                  "127.0.0.1, which cannot be reached here ({}): bring the loopback interface up ('ip link "
                  "set lo up'), or let it be \"shared_memory\"",
                  std::generic_category().message(wrong)));
}

} // namespace dlrun::runtime
