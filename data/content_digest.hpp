/// What a decoded array holds, in a few digests.
#pragma once

#include "data/decoded.hpp"

#include <string>
#include <vector>

namespace dlrun::data {

/// Pieces that an array is cut into: enough to say roughly where two differ, few enough to keep.
inline constexpr std::uint64_t digest_pieces = 64;

/// SHA-256, 32 bytes each, of up to digest_pieces runs of ceil(records / digest_pieces) records, in
/// order; the last one may be shorter. Hashes with several threads. Reads all of the array: what is
/// mapped comes from the disk.
std::vector<std::string> digest(const stored_array& array);

/// The records of a piece of an array of so many: [first, end).
struct record_run {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};
record_run records_of_piece(std::uint64_t records, std::uint64_t piece);

} // namespace dlrun::data
