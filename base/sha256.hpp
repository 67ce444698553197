/// SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <cstddef>
#include <dlrun/error.hpp>
#include <memory>
#include <openssl/types.h>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Of bytes that come in pieces.
class sha256 {
public:
  sha256();
  void add(std::span<const std::byte> bytes);
  /// The digest, 32 bytes. The last call.
  std::string finish();

private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

/// Of bytes in memory, as its 32 bytes.
std::string sha256_of(std::string_view bytes);

/// Of bytes in memory: 64 digits, lower case.
std::string sha256_hex(std::string_view bytes);

/// Of a whole file behind a descriptor, whose position does not change. `name` is what errors call
/// it.
/// @returns system.
result<std::string> sha256_of_file(int fd, const std::string& name);

/// 64 digits, lower case?
bool is_sha256_hex(std::string_view text);

} // namespace dlrun::base
