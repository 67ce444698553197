/// Is this text?
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Offset of the first byte that is not valid UTF-8 (RFC 3629: no overlong forms, no surrogates, at
/// most U+10FFFF).
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// The text as it may be shown on one line of a terminal: control characters and broken bytes
/// escaped, at most `length_max` bytes, an ellipsis where it was cut.
std::string printable(std::string_view text, std::size_t length_max = 60);

} // namespace dlrun::base
