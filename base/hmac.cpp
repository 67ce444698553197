#include "base/hmac.hpp"

#include "base/random.hpp"

#include <dlrun/check.hpp>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace dlrun::base {

hmac_key hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes) {
  hmac_key code{};
  unsigned int size = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                          reinterpret_cast<unsigned char*>(code.data()), &size);
  DLRUN_CHECK(made != nullptr && size == code.size(), "HMAC of OpenSSL cannot fail");
  return code;
}

hmac_key derived_key(const hmac_key& key, std::string_view purpose) {
  return hmac_sha256(key, std::as_bytes(std::span{purpose}));
}

result<hmac_key> random_key() {
  hmac_key key{};
  if (auto filled = fill_random(key); !filled) return tl::unexpected(filled.error());
  return key;
}

bool is_same_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace dlrun::base
