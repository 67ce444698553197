#include "transport/run_token.hpp"

#include "base/hex.hpp"
#include "base/os_error.hpp"

#include <charconv>
#include <sys/random.h>

namespace dlrun::transport {

result<run_token> run_token::random() {
  run_token token;
  // Up to 256 bytes come whole once the generator is seeded; a signal can only interrupt the wait
  // for that.
  while (::getrandom(token.bytes.data(), token.bytes.size(), 0) != static_cast<ssize_t>(token.bytes.size()))
    if (errno != EINTR) return base::fail_errno("cannot get random bytes from the kernel");
  return token;
}

result<run_token> run_token::from_hex(std::string_view hex) {
  run_token token;
  bool good = hex.size() == 2 * token.bytes.size() && hex.find_first_not_of("0123456789abcdef") == hex.npos;
  for (std::size_t i = 0; good && i < token.bytes.size(); ++i)
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, token.bytes[i], 16);
  if (!good) return fail(error_code::bad_usage, "a run token must be 32 hexadecimal digits");
  return token;
}

std::string run_token::to_hex() const { return base::to_hex(std::as_bytes(std::span(bytes))); }

bool operator==(const run_token& a, const run_token& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i)
    difference |= static_cast<unsigned>(a.bytes[i] ^ b.bytes[i]);
  return difference == 0;
}

} // namespace dlrun::transport
