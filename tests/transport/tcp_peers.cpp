#include "tests/transport/tcp_peers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/time.h>
#include <vector>

namespace dlrun::transport::testing {
namespace {

void make_blocking(int socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  const timeval patience{20, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

} // namespace

plain_socket::plain_socket(base::unique_fd connected)
    : fd_(std::move(connected)) {
  make_blocking(fd_.get());
}

bool plain_socket::send(const void* data, std::size_t size) const {
  return ::send(fd_.get(), data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool plain_socket::receive(void* data, std::size_t size) const {
  return ::recv(fd_.get(), data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

bool plain_socket::hangs_up() const {
  char byte = 0;
  const auto got = ::recv(fd_.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

plain_socket connect_plain(const std::string& address) {
  const auto where = tcp::parse_address(address).value();
  base::unique_fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  expect(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&where.at), sizeof where.at) == 0,
         "connect");
  return plain_socket(std::move(socket));
}

plain_socket connect_proven(const std::string& address, const run_token& token) {
  auto socket = connect_plain(address);
  tcp::hello greeting;
  greeting.server = tcp::parse_address(address).value().server;
  tcp::challenge challenge;
  expect(socket.send(greeting) && socket.receive(challenge), "no challenge");
  expect(socket.send(tcp::answer{tcp::prove(token, "client", greeting, challenge.server)}), "no answer");
  return socket;
}

bool greet_as_server(const plain_socket& with, const run_token& token) {
  tcp::hello greeting;
  if (!with.receive(greeting)) return false;
  tcp::challenge challenge;
  challenge.knows = tcp::prove(token, "server", greeting, challenge.server);
  tcp::answer answer;
  return with.send(challenge) && with.receive(answer) &&
         tcp::same(answer.knows, tcp::prove(token, "client", greeting, challenge.server));
}

scripted_server::scripted_server(script each)
    : each_(std::move(each)) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  tcp::address at{{}, run_token::random().value().bytes};
  at.at.sin_family = AF_INET;
  at.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at.at;
  auto* const where = reinterpret_cast<sockaddr*>(&at.at);
  expect(::bind(listener_.get(), where, length) == 0 && ::listen(listener_.get(), 16) == 0 &&
             ::getsockname(listener_.get(), where, &length) == 0,
         "cannot listen");
  address_ = tcp::to_string(at);
  int ends[2] = {-1, -1};
  expect(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  stop_read_.reset(ends[0]);
  stop_write_.reset(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

scripted_server::~scripted_server() {
  stop_write_.reset();
  thread_.join();
}

void scripted_server::serve() {
  std::vector<plain_socket> open; // until the end
  for (int number = 0;; ++number) {
    pollfd ready[] = {{listener_.get(), POLLIN, 0}, {stop_read_.get(), POLLIN, 0}};
    ::poll(ready, 2, -1);
    if (ready[1].revents != 0) return;
    open.emplace_back(base::unique_fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    each_(open.back(), number);
  }
}

} // namespace dlrun::transport::testing
