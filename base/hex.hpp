/// Bytes as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dlrun::base {

/// Two hexadecimal digits a byte, lower case.
inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr auto digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const auto byte : bytes) {
    hex += digits[std::to_integer<unsigned>(byte) >> 4];
    hex += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

} // namespace dlrun::base
