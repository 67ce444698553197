#include "transport/exchange_wire.hpp"

#include "base/os_error.hpp"

#include <cstddef>
#include <cstring>

namespace dlrun::transport::wire {

namespace {

/// Room for a few descriptors; the kernel closes what does not fit and says so.
constexpr std::size_t descriptor_room = 4;

void take_descriptors(msghdr& message, packet& into) {
  std::size_t count = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      into.descriptor.reset(fd);
      ++count;
    }
  }
  into.descriptors_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  into.too_many_descriptors = count > 1;
  if (into.too_many_descriptors) into.descriptor.reset();
}

} // namespace

result<abstract_address> make_abstract_address(std::string_view name) {
  abstract_address address;
  if (name.empty() || name.size() > sizeof address.storage.sun_path - 1)
    return fail(error_code::protocol,
                fmt::format("'{}' is not the address of a segment server", name.substr(0, 120)));
  address.storage.sun_family = AF_UNIX;
  // sun_path[0] stays 0: that is what makes it abstract.
  std::memcpy(address.storage.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

result<base::unique_fd> make_socket() {
  base::unique_fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::fail_errno("cannot open a Unix socket (raise the limit of open files: ulimit -n)");
  return fd;
}

result<void> check_peer_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return base::fail_errno("cannot learn who is at the other end of a Unix socket");
  if (peer.uid != ::geteuid())
    return fail(error_code::fenced,
                fmt::format("process {} at the other end runs as user {}, not as {}: refused", peer.pid,
                            peer.uid, ::geteuid()));
  return {};
}

int send_packet(int socket, const void* data, std::size_t size, int descriptor) {
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

result<packet> receive_packet(int socket, void* data, std::size_t capacity) {
  iovec part{data, capacity};
  alignas(cmsghdr) char control[CMSG_SPACE(descriptor_room * sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  // MSG_TRUNC: the true size of a packet that is larger than the buffer.
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return base::fail_errno("the other end of a Unix socket failed");
  packet received;
  received.size = static_cast<std::size_t>(got);
  take_descriptors(message, received);
  return received;
}

} // namespace dlrun::transport::wire
