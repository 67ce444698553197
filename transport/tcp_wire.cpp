#include "transport/tcp_wire.hpp"

#include "base/hmac.hpp"
#include "base/ipv4_address.hpp"
#include "base/os_error.hpp"

#include <bit>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <span>

namespace dlrun::transport::tcp {
namespace {

constexpr std::string_view plain_scheme = "tcp://";
constexpr std::string_view tls_scheme = "tls://"; // as long

bool inside(const segment_piece& piece, std::uint64_t bytes) {
  return piece.bytes <= bytes && piece.offset <= bytes - piece.bytes;
}

/// Marks are read word by word.
bool is_words(const segment_piece& mark) {
  constexpr auto word = sizeof(std::uint64_t);
  return mark.offset % word == 0 && mark.bytes % word == 0 && mark.bytes <= segment_marks_bytes_max;
}

} // namespace

bool fits(const segment_part& part, std::uint64_t bytes) {
  const auto& [first, second] = part.marks;
  return inside(first, bytes) && inside(second, bytes) && inside(part.values, bytes) && is_words(first) &&
         is_words(second) && first.bytes + second.bytes <= segment_marks_bytes_max;
}

proof prove(const run_token& token, std::string_view side, const hello& greeting, const nonce& server) {
  std::string text{side};
  text.append(reinterpret_cast<const char*>(&greeting), sizeof greeting);
  text.append(reinterpret_cast<const char*>(server.data()), server.size());
  return std::bit_cast<proof>(
      base::hmac_sha256(std::as_bytes(std::span{token.bytes}), std::as_bytes(std::span{text})));
}

bool same(const proof& a, const proof& b) {
  return base::is_same_secret(std::as_bytes(std::span{a}), std::as_bytes(std::span{b}));
}

std::string to_string(const address& where) {
  return fmt::format("{}{}/{}", where.is_tls ? tls_scheme : plain_scheme, base::to_string(where.at),
                     run_token{where.server}.to_hex());
}

result<address> parse_address(std::string_view text) {
  const auto wrong = [&] {
    return fail(error_code::protocol,
                fmt::format("'{}' is not the address of a tensor server", text.substr(0, 120)));
  };
  const bool is_tls = text.starts_with(tls_scheme);
  if (!is_tls && !text.starts_with(plain_scheme)) return wrong();
  const auto rest = text.substr(plain_scheme.size());
  const auto slash = rest.find('/');
  if (slash == rest.npos) return wrong();
  const auto at = base::parse_ipv4_address(rest.substr(0, slash));
  const auto server = run_token::from_hex(rest.substr(slash + 1));
  if (!at || at->sin_port == 0 || !server) return wrong();
  const address where{*at, server->bytes, is_tls};
  if (!is_tls && !is_loopback(where.at))
    return fail(error_code::fenced,
                fmt::format("{} is another host's: tensors do not leave this host without TLS", text));
  return where;
}

result<base::unique_fd> make_socket() {
  base::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::fail_errno("cannot open a TCP socket (raise the limit of open files: ulimit -n)");
  set_no_delay(fd.get());
  return fd;
}

void set_no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // it works without, only later
}

void set_watched(int socket) {
  const int on = 1;
  const int seconds_of_silence = 5;
  const int probes = 3;
  const unsigned unanswered_ms = 10'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds_of_silence, sizeof seconds_of_silence);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &seconds_of_silence, sizeof seconds_of_silence);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

bool is_loopback(const sockaddr_in& at) { return ntohl(at.sin_addr.s_addr) >> 24 == 127; }

bool would_block(int code) { return code == EAGAIN || code == EWOULDBLOCK; }

} // namespace dlrun::transport::tcp
