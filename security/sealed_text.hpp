/// A secret that lies where others may read and write: encrypted and authenticated.
#pragma once

#include "base/hmac.hpp"
#include "security/credentials.hpp"

#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::security {

/// AES-256-GCM (NIST SP 800-38D) by OpenSSL, under a random nonce of 96 bits: 12 bytes of nonce,
/// the ciphertext, 16 bytes of tag. Of one key at most 2^32 texts.
/// @param purpose what the text is and whose, which is authenticated and not stored
/// @returns system when OpenSSL or the kernel's generator refuses.
result<std::string> seal(const base::hmac_key& key, std::string_view purpose, const secret_text& text);

/// @returns bad_usage when `sealed` was made under another key or for another purpose, or was
/// changed since: nobody can tell which.
result<secret_text> unseal(const base::hmac_key& key, std::string_view purpose, std::string_view sealed);

} // namespace dlrun::security
