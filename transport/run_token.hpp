/// run_token: the secret that the processes of one run share.
#pragma once

#include <array>
#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::transport {

/// 128 random bits. Processes of one run know it; it keeps two runs of one user apart. Travels in
/// the bootstrap data, never in argv or logs.
struct run_token {
  std::array<std::uint8_t, 16> bytes{};

  /// From the kernel's generator.
  static result<run_token> random();
  /// 32 lower-case hexadecimal digits, as to_hex() writes. @returns bad_usage otherwise.
  static result<run_token> from_hex(std::string_view hex);
  std::string to_hex() const;
  /// As to_bytes() has them. Nothing for another number of bytes.
  static std::optional<run_token> from_bytes(std::string_view bytes);
  std::string to_bytes() const { return {bytes.begin(), bytes.end()}; }

  /// Takes the same time wherever the first difference is.
  friend bool operator==(const run_token& a, const run_token& b);
};

} // namespace dlrun::transport
