/// Why a child ended, in its own words.
#pragma once

#include "base/unique_fd.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::agent {

/// The option that precedes the descriptor's number in the child's arguments.
inline constexpr std::string_view last_words_option = "--last-words-fd";
inline constexpr std::size_t last_words_bytes_max = 4096;

/// Memory that a child leaves them in: a file would not do where the disk is what failed, and a
/// message may be overtaken by the end.
result<base::unique_fd> make_last_words();
/// The child's side. Of more than last_words_bytes_max bytes the first are kept.
void leave_last_words(int fd, std::string_view text);
/// The parent's side, when the child has ended. @returns "" when it left none.
std::string read_last_words(int fd);

} // namespace dlrun::agent
