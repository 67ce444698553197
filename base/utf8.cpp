#include "base/utf8.hpp"

#include <fmt/format.h>

namespace dlrun::base {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

/// Length of the valid sequence at `i`, 0 if there is none.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const std::uint8_t first = byte_at(text, i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte_at(text, i + k) & 0xC0) != 0x80) return 0;
  const std::uint8_t second = byte_at(text, i + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

/// U+0080 to U+009F, which terminals may obey as they do what follows an ESC. Each of its two bytes
/// is shown as one that is broken.
bool is_c1_control(std::string_view text, std::size_t i) {
  return byte_at(text, i) == 0xC2 && i + 1 < text.size() && byte_at(text, i + 1) < 0xA0;
}

} // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text, std::size_t length_max) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    if (shown.size() >= length_max) return shown + "...";
    const std::size_t length = sequence_length(text, i);
    const std::uint8_t first = byte_at(text, i);
    if (length == 0 || first < 0x20 || first == 0x7F || is_c1_control(text, i)) {
      shown += first == '\n' ? "\\n" : fmt::format("\\x{:02x}", first);
      i += 1;
    } else {
      shown += text.substr(i, length);
      i += length;
    }
  }
  return shown;
}

} // namespace dlrun::base
