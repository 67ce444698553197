/// Files that appear whole or not at all.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Makes a temporary file beside `file`, readable by all, for the caller to fill, rename over `file` and
/// close. Its name goes to `temporary`. bad_usage where the user may not write, or there is no such folder.
/// @returns its descriptor
result<int> create_beside(const std::filesystem::path& file, std::string& temporary);

/// Writes `content` to a temporary file beside `file`, syncs it and renames it over `file`. Readers see the
/// old content or the new one. On failure `file` is as before and the temporary file is gone.
result<void> write_file_atomically(const std::filesystem::path& file, std::string_view content);
/// The same for content that lies in several places, one behind the other.
result<void> write_file_atomically(const std::filesystem::path& file,
                                   std::span<const std::string_view> parts);

} // namespace dlrun::base
