/// Options that are whole numbers.
#pragma once

#include "base/decimal.hpp"
#include "base/utf8.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string>

namespace dlrun::cli {

inline constexpr auto any_number = std::numeric_limits<std::uint64_t>::max();

/// "from 1 to 4096", "of at least 1"; "" of any number.
inline std::string describe_range(std::uint64_t min, std::uint64_t max) {
  if (max != any_number) return fmt::format("from {} to {}", min, max);
  return min > 0 ? fmt::format("of at least {}", min) : "";
}

/// The check of every option that is a whole number: decimal digits alone, from `min` to `max`.
/// Left to itself CLI11 takes "010" for eight, and "0x10", "+5" and " 5", and tells the bounds of a
/// type as those of the option. The message names the value and what is allowed, behind the option.
inline CLI::Validator whole_number(std::uint64_t min = 0, std::uint64_t max = any_number) {
  const auto range = describe_range(min, max);
  return {[min, max, range](const std::string& text) -> std::string {
            const auto value = base::parse_decimal<std::uint64_t>(text);
            if (value && *value >= min && *value <= max) return {};
            const bool is_plain = !text.empty() && !base::has_leading_zero(text) &&
                                  std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
            const auto* const form = is_plain ? "" : " in decimal digits, without leading zeros";
            const auto* const beyond = is_plain && !value && max == any_number ? ", which is too large" : "";
            return fmt::format("expected a whole number{}{}{}, found '{}'{}", range.empty() ? "" : " ", range,
                               form, base::printable(text), beyond);
          },
          range, "whole number"};
}

} // namespace dlrun::cli
