/// Numbers as people write them, in the one way that nobody reads as another number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace dlrun::base {

/// Does the number at the beginning of `text` have zeros before its first digit, as in "010" and
/// "-00.5"? "010" is eight for C and YAML 1.1, and ten for YAML 1.2.
constexpr bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// The whole of `text` as a decimal number. @returns nothing for one that `Number` does not hold,
/// and for what is written in another way: "010", "+5", "0x10", "1_000", " 5", as an integer "1e3".
/// As a floating-point number "inf" and "nan" are numbers too.
template <class Number>
std::optional<Number> parse_decimal(std::string_view text) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || has_leading_zero(text))
    return std::nullopt;
  return value;
}

} // namespace dlrun::base
