/// SHA-256, mostly in hexadecimal digits.
#pragma once

#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Of bytes in memory, as its 32 bytes.
std::string sha256_of(std::string_view bytes);

/// Of bytes in memory: 64 digits, lower case.
std::string sha256_hex(std::string_view bytes);

/// Of a whole file behind a descriptor, whose position does not change. `name` is what errors call
/// it.
/// @returns system.
result<std::string> sha256_of_file(int fd, const std::string& name);

/// 64 digits, lower case?
bool is_sha256_hex(std::string_view text);

} // namespace dlrun::base
