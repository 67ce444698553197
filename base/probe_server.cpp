#include "base/probe_server.hpp"

#include "base/ipv4_address.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>

namespace dlrun::base {
namespace {

constexpr std::string_view yes = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
                                 "Connection: close\r\n\r\nok\n";
constexpr std::string_view no = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
                                "Content-Length: 3\r\nConnection: close\r\n\r\nno\n";
constexpr std::string_view not_here =
    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
constexpr std::string_view end_of_request = "\r\n\r\n"; // of one without a body

tl::unexpected<error> cannot_listen(const std::string& where, std::string_view why) {
  return fail(error_code::bad_usage, fmt::format("cannot listen at {} for probes: {}", where, why));
}

/// @param address becomes that with the port that it has
result<unique_fd> listen_at(sockaddr_in& address, const std::string& where) {
  unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int on = 1;
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), at, length) != 0 || ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), at, &length) != 0)
    return cannot_listen(where, std::strerror(errno));
  return socket;
}

} // namespace

result<std::unique_ptr<probe_server>> probe_server::start(const std::string& listen,
                                                          std::shared_ptr<const pulse> of,
                                                          std::chrono::milliseconds patience) {
  auto address = parse_ipv4_address(listen);
  if (!address) return cannot_listen(listen, "it is no IPv4 address with a port, as in 10.0.0.2:7780");
  auto socket = listen_at(*address, listen);
  if (!socket) return tl::unexpected(socket.error());
  std::unique_ptr<probe_server> made{new probe_server{*std::move(socket), *address, std::move(of), patience}};
  if (auto begun = made->thread_.start("dlrun-probes", "the probe server", *made); !begun)
    return tl::unexpected(begun.error());
  return made;
}

probe_server::time_point probe_server::watch(std::vector<pollfd>& fds) {
  const auto again = listener_.watch(fds, true, std::chrono::steady_clock::now());
  for (const auto& one : askers_) fds.push_back({one.socket.get(), POLLIN, 0});
  return askers_.empty() ? again : std::min(again, askers_.front().until);
}

void probe_server::serve(std::span<const pollfd> fds) {
  const auto now = std::chrono::steady_clock::now();
  const auto of_askers = fds.subspan(1);
  for (std::size_t i = of_askers.size(); i-- > 0;) {
    auto& one = askers_[i];
    if (now >= one.until || (of_askers[i].revents != 0 && is_served(one, now)))
      askers_.erase(askers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (fds[0].revents == 0) return;
  listener_.accept_waiting(now, [&](unique_fd socket) {
    if (askers_.size() == askers_max) askers_.pop_front();
    askers_.push_back({std::move(socket), now + patience_});
    return false; // one at a turn, so that it may ask before others displace it
  });
}

/// @returns whether it has its answer, or is not to get one
bool probe_server::is_served(asker& one, time_point now) const {
  std::array<char, request_bytes_max> part{};
  const auto bytes = ::recv(one.socket.get(), part.data(), request_bytes_max - one.request.size(), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes <= 0) return true;
  one.request.append(part.data(), static_cast<std::size_t>(bytes));
  const bool is_whole = one.request.find(end_of_request) != std::string::npos;
  if (!is_whole && one.request.size() < request_bytes_max) return false;
  const auto answer = is_whole ? answer_to(one.request, now) : not_here;
  static_cast<void>(::send(one.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL)); // there is room
  return true;
}

std::string_view probe_server::answer_to(std::string_view request, time_point now) const {
  if (request.starts_with("GET /livez HTTP/1.")) return pulse_->is_alive(now) ? yes : no;
  if (request.starts_with("GET /readyz HTTP/1.")) return pulse_->is_ready(now) ? yes : no;
  return not_here;
}

} // namespace dlrun::base
