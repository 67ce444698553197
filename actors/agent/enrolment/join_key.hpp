/// A secret by which any number of hosts join a job, again and again.
#pragma once

#include "base/hmac.hpp"
#include "security/credentials.hpp"
#include "security/tls_session.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <string_view>

namespace dlrun::agent {

/// 32 random bytes that the root and the hosts have. Each proves to the other that it has them,
/// for one TLS session: the proof is an HMAC-SHA-256 of what that session has and no other. It is
/// of no use in another session or in the other direction, and tells nothing of the key.
class join_key {
public:
  enum class side : std::uint8_t { host, root };

  /// From 64 hexadecimal digits; space around them does not count. @returns bad_usage for anything
  /// else.
  static result<join_key> parse(std::string_view text);

  /// That `who` has the key, in the session with this binding.
  base::hmac_key proof(side who, const security::channel_binding& session) const;
  /// Was `shown` made by who has the key? Compared in constant time.
  bool is_proof(std::string_view shown, side who, const security::channel_binding& session) const;
  /// A key for one other purpose, which tells nothing of this one. None begins "dlrun enrolment".
  base::hmac_key derived(std::string_view purpose) const;

private:
  explicit join_key(security::secret_text bytes)
      : bytes_{std::move(bytes)} {}

  security::secret_text bytes_;
};

/// Of a proof.
inline constexpr std::size_t join_proof_bytes = sizeof(base::hmac_key);

} // namespace dlrun::agent
