/// HMAC-SHA-256 (RFC 2104), by OpenSSL: proves who wrote some bytes to who knows the same key.
#pragma once

#include <array>
#include <cstddef>
#include <dlrun/error.hpp>
#include <span>
#include <string_view>

namespace dlrun::base {

/// A secret of 32 bytes, or the code that one makes.
using hmac_key = std::array<std::byte, 32>;

/// `key` may have any length.
hmac_key hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);
/// A key for one purpose; from it nobody learns the one it was made from, nor that of another
/// purpose.
hmac_key derived_key(const hmac_key& key, std::string_view purpose);
/// From the kernel's generator. @returns system.
result<hmac_key> random_key();
/// Takes the same time wherever the first difference is.
bool is_same_secret(std::span<const std::byte> a, std::span<const std::byte> b);

} // namespace dlrun::base
