#include "transport/doorbell.hpp"

#include "base/os_error.hpp"
#include "transport/exchange_wire.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::transport {

result<std::pair<std::unique_ptr<doorbell>, std::unique_ptr<doorbell>>> doorbell::pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return base::fail_errno("cannot open a pair of Unix sockets (raise the limit of open files: ulimit -n)");
  return std::pair{std::make_unique<doorbell>(base::unique_fd(ends[0])),
                   std::make_unique<doorbell>(base::unique_fd(ends[1]))};
}

bool doorbell::ring(std::span<const std::byte> packet) const {
  DLRUN_CHECK(!packet.empty() && packet.size() <= doorbell_packet_bytes_max,
              "a doorbell's packet of {} bytes", packet.size());
  return wire::send_packet(socket_.get(), packet.data(), packet.size()) == 0;
}

doorbell::taken doorbell::take(std::span<std::byte> into) const {
  ssize_t got = 0;
  // MSG_TRUNC: the true size of a packet that is larger than the buffer. Descriptors beside it are
  // not taken.
  do got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {outcome::nothing, {}};
  const auto size = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  if (size == 0 || size > into.size()) return {outcome::closed, {}};
  return {outcome::packet, into.first(size)};
}

} // namespace dlrun::transport
