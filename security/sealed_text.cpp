#include "security/sealed_text.hpp"

#include "base/random.hpp"
#include "security/openssl_objects.hpp"

#include <array>
#include <openssl/evp.h>

namespace dlrun::security {
namespace {

constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t tag_bytes = 16;

using cipher = std::unique_ptr<EVP_CIPHER_CTX, openssl::freed_by<EVP_CIPHER_CTX_free>>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

enum class direction : int { opens = 0, seals = 1 };

/// Ready for the text; null when OpenSSL refuses.
cipher begin(const base::hmac_key& key, std::string_view nonce, std::string_view purpose, direction which) {
  cipher made{EVP_CIPHER_CTX_new()};
  int length = 0;
  const bool is_ready = made &&
                        EVP_CipherInit_ex(made.get(), EVP_aes_256_gcm(), nullptr,
                                          reinterpret_cast<const unsigned char*>(key.data()), bytes_of(nonce),
                                          static_cast<int>(which)) == 1 &&
                        EVP_CipherUpdate(made.get(), nullptr, &length, bytes_of(purpose),
                                         static_cast<int>(purpose.size())) == 1;
  return is_ready ? std::move(made) : nullptr;
}

} // namespace

result<std::string> seal(const base::hmac_key& key, std::string_view purpose, const secret_text& text) {
  std::array<std::byte, nonce_bytes> nonce{};
  if (auto filled = base::fill_random(nonce); !filled) return tl::unexpected(filled.error());
  const auto& plain = text.reveal();
  std::string made(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  const auto context = begin(key, made, purpose, direction::seals);
  made.resize(nonce_bytes + plain.size() + tag_bytes);
  int length = 0;
  int last = 0;
  auto* const at = bytes_of(made) + nonce_bytes;
  const bool is_done =
      context &&
      EVP_CipherUpdate(context.get(), at, &length, bytes_of(plain), static_cast<int>(plain.size())) == 1 &&
      EVP_CipherFinal_ex(context.get(), at + length, &last) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag_bytes),
                          at + plain.size()) == 1;
  if (!is_done) return openssl::fail_openssl(error_code::system, "cannot encrypt");
  return made;
}

result<secret_text> unseal(const base::hmac_key& key, std::string_view purpose, std::string_view sealed) {
  const auto refused = [] {
    return fail(error_code::bad_usage, "it was made with another key, or changed since");
  };
  if (sealed.size() < nonce_bytes + tag_bytes) return refused();
  const auto context = begin(key, sealed.substr(0, nonce_bytes), purpose, direction::opens);
  if (!context) return openssl::fail_openssl(error_code::system, "cannot decrypt");
  const auto inner = sealed.substr(nonce_bytes, sealed.size() - nonce_bytes - tag_bytes);
  std::string tag{sealed.substr(sealed.size() - tag_bytes)};
  std::string plain(inner.size(), '\0');
  int length = 0;
  int last = 0;
  const bool is_whole = EVP_CipherUpdate(context.get(), bytes_of(plain), &length, bytes_of(inner),
                                         static_cast<int>(inner.size())) == 1 &&
                        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag_bytes),
                                            tag.data()) == 1 &&
                        EVP_CipherFinal_ex(context.get(), bytes_of(plain) + length, &last) == 1;
  secret_text text{std::move(plain)};
  if (!is_whole) return refused();
  return text;
}

} // namespace dlrun::security
