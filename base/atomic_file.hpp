/// Files that appear whole or not at all.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <span>
#include <string_view>

namespace dlrun::base {

/// Writes `content` as output_file does: readers of a regular file see the old content or the new
/// one, which is durable when this returns. On failure as output_file::finish().
result<void> write_file_atomically(const std::filesystem::path& file, std::string_view content);
/// The same for content that lies in several places, one behind the other.
result<void> write_file_atomically(const std::filesystem::path& file,
                                   std::span<const std::string_view> parts);

} // namespace dlrun::base
