/// Durations and sizes as people write them: "500ms", "1.5s", "10GB"; and numbers. None begins with
/// zeros before its first digit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dlrun::job {

/// Parses a number with a unit: ns, us, ms, s, min, h, d. @returns seconds; nothing for other text.
std::optional<double> parse_duration(std::string_view text);

/// Parses a number with a unit: B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024);
/// no unit means bytes. @returns bytes, rounded down; nothing for other text or more than 2^63.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Parses a whole number from 0 to 10^12. @returns nothing for other text.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// How often something happens: every `count` epochs or steps.
struct interval {
  std::uint64_t count = 0; ///< at least 1
  bool epochs = false;     ///< else steps

  bool operator==(const interval&) const = default;
};
/// Parses a number from 1 to 10^12 and one of epoch, epochs, step, steps. @returns nothing for
/// other text.
std::optional<interval> parse_interval(std::string_view text);

} // namespace dlrun::job
