#include "actors/agent/enrolment/join_key.hpp"

#include <span>
#include <string>

namespace dlrun::agent {
namespace {

constexpr std::size_t key_bytes = 32;

/// For what a proof is made: none of one direction is good in the other. Another form of the proof
/// has other labels.
std::string_view label_of(join_key::side who) {
  return who == join_key::side::host ? "dlrun enrolment 1, of a host" : "dlrun enrolment 1, of the root";
}

/// -1: none.
int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

} // namespace

result<join_key> join_key::parse(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first != text.npos) text = text.substr(first, text.find_last_not_of(space) + 1 - first);
  const auto wrong = fail(error_code::bad_usage,
                          "there is no key in it: a key is 32 random bytes as 64 hexadecimal digits, on one "
                          "line, as 'openssl rand -hex 32' prints them");
  if (text.size() != 2 * key_bytes) return wrong;
  std::string bytes(key_bytes, '\0');
  for (std::size_t i = 0; i < key_bytes; ++i) {
    const int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return wrong;
    bytes[i] = static_cast<char>(high * 16 + low);
  }
  return join_key{security::secret_text{std::move(bytes)}};
}

base::hmac_key join_key::derived(std::string_view purpose) const {
  return base::hmac_sha256(std::as_bytes(std::span{bytes_.reveal()}),
                           std::as_bytes(std::span{purpose.data(), purpose.size()}));
}

base::hmac_key join_key::proof(side who, const security::channel_binding& session) const {
  return base::hmac_sha256(derived(label_of(who)), session);
}

bool join_key::is_proof(std::string_view shown, side who, const security::channel_binding& session) const {
  return base::is_same_secret(std::as_bytes(std::span{shown.data(), shown.size()}), proof(who, session));
}

} // namespace dlrun::agent
