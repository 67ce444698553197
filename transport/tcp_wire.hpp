/// What tcp_server and tcp_client say to each other.
#pragma once

#include "base/unique_fd.hpp"
#include "transport/tensor_channel.hpp"

#include <array>
#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <type_traits>

namespace dlrun::transport::tcp {

// A connection begins with a proof on both sides that they know the run's token, which itself never
// travels:
//   client: hello       {who is wanted, a nonce}
//   server: challenge   {a nonce, HMAC(token, "server", hello, nonce)}
//   client: answer      {HMAC(token, "client", hello, nonce)}
// and goes on with requests, answered in their order:
//   client: request     {segment, the part that is wanted}
//   server: reply, then, with status `here`, the bytes of both marks and of the values, then a
//   trailer that
//           says whether the marks were the same afterwards.
// All are of fixed size, in the byte order of x86-64: hosts of one job have the same fingerprint.

inline constexpr std::uint32_t hello_magic = 0x68'74'6c'64;     // "dlth"
inline constexpr std::uint32_t challenge_magic = 0x63'74'6c'64; // "dltc"
inline constexpr std::uint32_t request_magic = 0x71'74'6c'64;   // "dltq"
inline constexpr std::uint32_t reply_magic = 0x73'74'6c'64;     // "dlts"
inline constexpr std::uint32_t trailer_magic = 0x74'74'6c'64;   // "dltt"
inline constexpr std::uint32_t format_version = 1;

using nonce = std::array<std::uint8_t, 16>;
using proof = std::array<std::uint8_t, 32>;

struct hello {
  std::uint32_t magic = hello_magic;
  std::uint32_t version = format_version;
  nonce server{}; ///< the identity in its address: ports are used again, identities never
  nonce client{};
};
struct challenge {
  std::uint32_t magic = challenge_magic;
  std::uint32_t version = format_version;
  nonce server{};
  proof knows{};
};
struct answer {
  proof knows{};
};
struct request {
  std::uint32_t magic = request_magic;
  std::uint32_t reserved = 0;
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0; ///< that the whole segment is expected to have
  segment_part part;
};
enum class reply_status : std::uint32_t { here = 1, unknown_segment = 2, other_size = 3, no_such_part = 4 };
struct reply {
  std::uint32_t magic = reply_magic;
  reply_status status = reply_status::here;
  std::uint64_t segment = 0;
};
struct trailer {
  std::uint32_t magic = trailer_magic;
  std::uint32_t unchanged = 0; ///< 1: the marks were the same before and after
};
static_assert(sizeof(hello) == 40 && sizeof(challenge) == 56 && sizeof(answer) == 32);
static_assert(sizeof(request) == 72 && sizeof(reply) == 16 && sizeof(trailer) == 8);
static_assert(std::is_trivially_copyable_v<request> && std::is_trivially_copyable_v<hello>);

/// Whether `part` lies in a segment of `bytes`, with marks that are words and not too many.
bool fits(const segment_part& part, std::uint64_t bytes);

/// What the end called `side` ("client", "server") shows to know the token.
proof prove(const run_token& token, std::string_view side, const hello& greeting, const nonce& server);
/// Takes the same time wherever the first difference is.
bool same(const proof& a, const proof& b);

/// Where a server is and which one: "tcp://127.0.0.1:PORT/<32 hexadecimal digits>", or
/// "tls://ADDRESS:PORT/.." when all of the above goes through TLS.
struct address {
  sockaddr_in at{};
  nonce server{};
  bool is_tls = false;
};
std::string to_string(const address& where);
/// @returns protocol for any other text; fenced for a host that is not this one and no TLS.
result<address> parse_address(std::string_view text);

/// A close-on-exec, non-blocking TCP socket without Nagle's delay.
result<base::unique_fd> make_socket();
void set_no_delay(int socket);
/// Of a connection to another host: it ends within 20 s when that host does not answer any more.
void set_watched(int socket);
/// 127.0.0.0/8?
bool is_loopback(const sockaddr_in& at);
/// Whether an errno says that a socket has nothing to give or takes nothing at the moment.
bool would_block(int code);

} // namespace dlrun::transport::tcp
