#include "tests/base/scripted_server.hpp"

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

/// The lines of a head, of which the first is "METHOD PATH HTTP/1.1".
base::http_request read_head(const std::string& head) {
  const auto method_end = head.find(' '), path_end = head.find(' ', method_end + 1);
  base::http_request read{.method = head.substr(0, method_end),
                          .url = head.substr(method_end + 1, path_end - method_end - 1)};
  for (auto begin = head.find("\r\n"); begin != std::string::npos;) {
    const auto end = head.find("\r\n", begin + 2);
    read.headers.push_back(head.substr(begin + 2, end == std::string::npos ? end : end - begin - 2));
    begin = end;
  }
  return read;
}

/// @returns nothing when the other end has gone.
std::optional<base::http_request> receive(int connection) {
  std::string all;
  std::array<char, 4096> room{};
  for (;;) {
    const auto end = all.find(end_of_head);
    if (end != std::string::npos && all.size() >= end + end_of_head.size() + length_in(all.substr(0, end))) {
      auto asked = read_head(all.substr(0, end));
      asked.body = all.substr(end + end_of_head.size());
      return asked;
    }
    const auto got = ::recv(connection, room.data(), room.size(), 0);
    if (got <= 0) return std::nullopt;
    all.append(room.data(), static_cast<std::size_t>(got));
  }
}

} // namespace

scripted_server::scripted_server(script answer)
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

scripted_server::~scripted_server() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
}

std::string scripted_server::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

void scripted_server::serve() {
  for (;;) {
    const base::unique_fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    serve(connection.get());
  }
}

void scripted_server::serve(int connection) {
  const auto asked = receive(connection);
  if (!asked) return;
  const auto said = answer_(*asked);
  const auto patience =
      said.retry_after ? fmt::format("Retry-After: {}\r\n", said.retry_after->count()) : std::string{};
  const auto text = fmt::format("HTTP/1.1 {} x\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{}",
                                said.status, patience, said.body.size(), said.body);
  ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

} // namespace dlrun::test
