/// Reads small files whole.
#pragma once

#include <cstddef>
#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace dlrun::base {

/// All bytes of the file, or nothing where there is none. What cannot be read is an error, never a
/// file that is shorter, or not there. Blocks. @param most bytes
/// @returns system of what cannot be read, or is no file; limit_exceeded of what has more bytes.
result<std::optional<std::string>> read_small_file(const std::filesystem::path& file, std::size_t most);

} // namespace dlrun::base
