#include "transport/tcp_wire.hpp"

#include "base/os_error.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <dlrun/check.hpp>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace dlrun::transport::tcp {
namespace {

constexpr std::string_view scheme = "tcp://";

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
  proof made{};
  unsigned int size = 0;
  const auto* done =
      HMAC(EVP_sha256(), token.bytes.data(), static_cast<int>(token.bytes.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), made.data(), &size);
  DLRUN_CHECK(done != nullptr && size == made.size(), "HMAC-SHA256 of OpenSSL cannot fail");
  return made;
}

bool same(const proof& a, const proof& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string to_string(const address& where) {
  char host[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &where.at.sin_addr, host, sizeof host);
  return fmt::format("{}{}:{}/{}", scheme, host, ntohs(where.at.sin_port), run_token{where.server}.to_hex());
}

result<address> parse_address(std::string_view text) {
  const auto wrong = [&] {
    return fail(error_code::protocol,
                fmt::format("'{}' is not the address of a tensor server", text.substr(0, 120)));
  };
  if (!text.starts_with(scheme)) return wrong();
  const auto rest = text.substr(scheme.size());
  const auto colon = rest.find(':');
  const auto slash = rest.find('/');
  if (colon == rest.npos || slash == rest.npos || slash < colon) return wrong();
  address where;
  where.at.sin_family = AF_INET;
  const std::string host{rest.substr(0, colon)};
  const auto port = rest.substr(colon + 1, slash - colon - 1);
  std::uint16_t number = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  const auto server = run_token::from_hex(rest.substr(slash + 1));
  if (::inet_pton(AF_INET, host.c_str(), &where.at.sin_addr) != 1 || failed != std::errc{} ||
      end != port.data() + port.size() || number == 0 || !server)
    return wrong();
  where.at.sin_port = htons(number);
  where.server = server->bytes;
  if (ntohl(where.at.sin_addr.s_addr) >> 24 != 127)
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

bool would_block(int code) { return code == EAGAIN || code == EWOULDBLOCK; }

} // namespace dlrun::transport::tcp
