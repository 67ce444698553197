/// Bytes as text of 64 letters (RFC 4648, with padding), and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlrun::base {

std::string to_base64(std::string_view bytes);

/// @returns nothing when `text` is not what to_base64() makes.
std::optional<std::string> from_base64(std::string_view text);

} // namespace dlrun::base
