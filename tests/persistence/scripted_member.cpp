#include "tests/persistence/scripted_member.hpp"

#include <array>
#include <charconv>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <utility>

namespace dlrun::test {
namespace {

constexpr std::string_view end_of_head = "\r\n\r\n";

/// What curl sends: "Content-Length: 12".
std::size_t length_in(const std::string& head) {
  constexpr std::string_view name = "Content-Length: ";
  const auto at = head.find(name);
  std::size_t length = 0;
  if (at != std::string::npos)
    std::from_chars(head.data() + at + name.size(), head.data() + head.size(), length);
  return length;
}

struct request {
  std::string path;
  std::string body;
};

/// @returns nothing when the other end has gone.
std::optional<request> receive(int connection) {
  std::string all;
  std::array<char, 4096> room{};
  for (;;) {
    const auto end = all.find(end_of_head);
    if (end != std::string::npos && all.size() >= end + end_of_head.size() + length_in(all.substr(0, end)))
      return request{all.substr(5, all.find(' ', 5) - 5), all.substr(end + end_of_head.size())}; // "POST "
    const auto got = ::recv(connection, room.data(), room.size(), 0);
    if (got <= 0) return std::nullopt;
    all.append(room.data(), static_cast<std::size_t>(got));
  }
}

} // namespace

scripted_member::scripted_member(script answer)
    : answer_(std::move(answer))
    , socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  ::socklen_t size = sizeof at;
  DLRUN_CHECK(::bind(socket_.get(), address, size) == 0 && ::listen(socket_.get(), 16) == 0 &&
                  ::getsockname(socket_.get(), address, &size) == 0,
              "loopback has a port");
  port_ = ntohs(at.sin_port);
  thread_ = std::thread([this] { serve(); });
}

scripted_member::~scripted_member() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
}

std::string scripted_member::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

void scripted_member::serve() {
  for (;;) {
    const base::unique_fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    serve(connection.get());
  }
}

void scripted_member::serve(int connection) {
  const auto asked = receive(connection);
  if (!asked) return;
  const auto said = answer_(asked->path, asked->body);
  const auto text = fmt::format("HTTP/1.1 {} x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                                said.status, said.body.size(), said.body);
  ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

} // namespace dlrun::test
