#include "transport/run_token.hpp"

#include "base/hex.hpp"
#include "base/hmac.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <charconv>

namespace dlrun::transport {

result<run_token> run_token::random() {
  run_token token;
  if (auto filled = base::fill_random(std::as_writable_bytes(std::span{token.bytes})); !filled)
    return tl::unexpected(filled.error());
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

std::optional<run_token> run_token::from_bytes(std::string_view bytes) {
  run_token token;
  if (bytes.size() != token.bytes.size()) return std::nullopt;
  std::ranges::copy(bytes, token.bytes.begin());
  return token;
}

bool operator==(const run_token& a, const run_token& b) {
  return base::is_same_secret(std::as_bytes(std::span{a.bytes}), std::as_bytes(std::span{b.bytes}));
}

} // namespace dlrun::transport
