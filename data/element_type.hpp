/// The types of stored values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dlrun::data {

/// Little-endian, as NumPy names them: unsigned byte, signed integers of 4 and 8 bytes, IEEE floats
/// of 4 and 8.
enum class element_type : std::uint8_t { u1 = 1, i4, i8, f4, f8 };

constexpr std::size_t size_of(element_type type) {
  switch (type) {
  case element_type::u1: return 1;
  case element_type::i4:
  case element_type::f4: return 4;
  case element_type::i8:
  case element_type::f8: return 8;
  }
  return 0;
}

constexpr bool is_float(element_type type) { return type == element_type::f4 || type == element_type::f8; }

/// "u1", "i4", ...
constexpr std::string_view to_string(element_type type) {
  switch (type) {
  case element_type::u1: return "u1";
  case element_type::i4: return "i4";
  case element_type::i8: return "i8";
  case element_type::f4: return "f4";
  case element_type::f8: return "f8";
  }
  return "?";
}

/// The type of that name; nothing for any other text.
constexpr std::optional<element_type> element_type_from(std::string_view name) {
  for (const auto type :
       {element_type::u1, element_type::i4, element_type::i8, element_type::f4, element_type::f8})
    if (to_string(type) == name) return type;
  return std::nullopt;
}

} // namespace dlrun::data
