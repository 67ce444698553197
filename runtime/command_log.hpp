/// What a command that starts an agent prints, in a file that stays small.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dlrun::runtime {

/// A log that is larger is shortened; each end is kept in this length.
inline constexpr std::uintmax_t command_log_bytes_max = 256 * 1024;
inline constexpr std::uintmax_t command_log_end_bytes = 16 * 1024;

/// The last line that is not empty, of what was written behind `from`, fit to be shown: at most
/// 4096 bytes, what is no text escaped. A line that is longer than an end of a log that is kept
/// begins there. "" when there is none.
std::string last_line(const std::filesystem::path& file, std::uintmax_t from);

/// Takes the middle out of a log that is too large. One that is not is only looked at, and not
/// opened, so this may be called again and again. Others may append to it meanwhile (O_APPEND);
/// what they write in that moment may go too. @returns where what was written behind `from` begins
/// now, or where what is left of it does.
std::uintmax_t shorten_log(const std::filesystem::path& file, std::uintmax_t from);

} // namespace dlrun::runtime
