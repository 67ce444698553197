#include "tests/transport/rogue_peer.hpp"

#include "transport/run_token.hpp"

#include <cstring>
#include <dlrun/check.hpp>
#include <fcntl.h>
#include <poll.h>

namespace dlrun::transport::testing {

namespace {

constexpr int patience_ms = 20'000;

base::unique_fd blocking_socket() {
  return base::unique_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

/// Whether `fd` is readable before `stop` is.
bool readable(int fd, int stop) {
  pollfd fds[2] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
  return ::poll(fds, 2, patience_ms) > 0 && fds[0].revents != 0;
}

} // namespace

rogue_server::rogue_server(std::function<void(int, const wire::request&)> answer)
    : answer_(std::move(answer))
    , address_("dlrun-rogue-" + run_token::random().value().to_hex())
    , listener_(blocking_socket()) {
  const auto address = wire::make_abstract_address(address_).value();
  DLRUN_CHECK(::bind(listener_.get(), address.get(), address.length) == 0, "bind: {}", errno);
  DLRUN_CHECK(::listen(listener_.get(), 8) == 0, "listen: {}", errno);
  int ends[2];
  DLRUN_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "pipe: {}", errno);
  stop_read_.reset(ends[0]);
  stop_write_.reset(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

rogue_server::~rogue_server() {
  stop_write_.reset();
  thread_.join();
}

void rogue_server::serve() const {
  if (!readable(listener_.get(), stop_read_.get())) return;
  const base::unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!readable(socket.get(), stop_read_.get())) return;
  wire::request asked;
  if (::recv(socket.get(), &asked, sizeof asked, 0) <= 0) return;
  answer_(socket.get(), asked);
  pollfd stop{stop_read_.get(), POLLIN, 0};
  ::poll(&stop, 1, patience_ms);
}

void send_with(int socket, const void* data, std::size_t size, const std::vector<int>& descriptors) {
  iovec part{const_cast<void*>(data), size};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
  }
  DLRUN_CHECK(::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0, "sendmsg: {}", errno);
}

base::unique_fd connect_to(const std::string& address) {
  auto socket = blocking_socket();
  const auto where = wire::make_abstract_address(address).value();
  DLRUN_CHECK(::connect(socket.get(), where.get(), where.length) == 0, "connect: {}", errno);
  return socket;
}

std::size_t exchange_raw(int socket, const std::string& bytes, wire::reply& into) {
  if (::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return 0;
  pollfd fd{socket, POLLIN, 0};
  DLRUN_CHECK(::poll(&fd, 1, patience_ms) == 1, "the server neither answered nor hung up");
  const auto got = ::recv(socket, &into, sizeof into, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

bool hangs_up(int socket) {
  pollfd fd{socket, POLLIN, 0};
  char byte = 0;
  return ::poll(&fd, 1, patience_ms) == 1 && ::recv(socket, &byte, 1, 0) <= 0;
}

} // namespace dlrun::transport::testing
