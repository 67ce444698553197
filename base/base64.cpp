#include "base/base64.hpp"

#include <openssl/evp.h>

namespace dlrun::base {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

} // namespace

std::string to_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0'); // one for the zero behind it
  const auto length = EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty()) return std::string{};
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(bytes_of(bytes), bytes_of(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  // OpenSSL counts the padding as zeros, and takes some letters that we never write.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes = bytes.substr(0, bytes.size() - padding);
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

} // namespace dlrun::base
