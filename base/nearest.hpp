/// Guesses what a user meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Least number of insertions, deletions, replacements and swaps of neighbours that turn `a` into
/// `b` (optimal string alignment distance; Damerau 1964, Wagner and Fischer 1974). O(|a| |b|); long
/// texts are cut at 200 bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least edit distance to `word`, the first of equals. Empty when there are
/// none.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Near enough to be a slip of the keyboard: at most a third of `candidate` differs.
bool is_close(std::string_view word, std::string_view candidate);

/// A hint for an unknown word: `did you mean "x"?` when one is close, else
/// `the nearest is "x", valid are x, y, z`.
std::string hint(std::string_view word, std::span<const std::string> candidates);

} // namespace dlrun::base
