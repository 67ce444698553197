#include "base/sha256.hpp"

#include "base/hex.hpp"
#include "base/read_at.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <vector>

namespace dlrun::base {
namespace {

constexpr std::size_t digest_bytes = 32;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

std::string hex_of(std::string_view digest) { return to_hex(std::as_bytes(std::span{digest})); }

} // namespace

sha256::sha256()
    : context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free} {
  DLRUN_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
              "SHA-256 of OpenSSL cannot fail");
}

void sha256::add(std::span<const std::byte> bytes) {
  DLRUN_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
              "SHA-256 of OpenSSL cannot fail");
}

std::string sha256::finish() {
  std::string digest(digest_bytes, '\0');
  unsigned int size = 0;
  auto* const into = reinterpret_cast<unsigned char*>(digest.data());
  DLRUN_CHECK(EVP_DigestFinal_ex(context_.get(), into, &size) == 1 && size == digest.size(),
              "SHA-256 of OpenSSL cannot fail");
  return digest;
}

std::string sha256_of(std::string_view bytes) {
  sha256 sum;
  sum.add(std::as_bytes(std::span{bytes}));
  return sum.finish();
}

std::string sha256_hex(std::string_view bytes) { return hex_of(sha256_of(bytes)); }

result<std::string> sha256_of_file(int fd, const std::string& name) {
  sha256 sum;
  std::vector<std::byte> chunk(chunk_bytes);
  for (std::uint64_t offset = 0;; offset += chunk.size()) {
    const auto had = read_at(fd, chunk, offset);
    if (!had) return fail(error_code::system, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
    sum.add(std::span{chunk}.first(*had));
    if (*had < chunk.size()) return hex_of(sum.finish());
  }
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 2 * digest_bytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace dlrun::base
