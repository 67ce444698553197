/// NumPy's array files, mapped as they are.
#pragma once

#include "data/decoded.hpp"
#include <dlrun/reader.hpp>

namespace dlrun::data {

/// What the head of a .npy file says (NumPy Enhancement Proposal 1, formats 1.0, 2.0 and 3.0).
struct npy_header {
  element_type type = element_type::u1;
  std::vector<std::uint64_t> dims;
  std::uint64_t header_bytes = 0; ///< before the first value
};

/// Reads the head at the start of `bytes`. The head is a Python dictionary; only what numpy.save
/// writes is understood, and nothing is evaluated. Types: u1, i4, i8, f4, f8, little-endian, C
/// order.
/// @returns bad_data naming `name`, the byte and what would be read.
result<npy_header> parse_npy_header(std::span<const std::uint8_t> bytes, const std::string& name);

/// Maps a .npy file whose size is exactly what its head says.
result<stored_array> map_npy(const std::filesystem::path& file);

/// Records and labels, each of its own file. Takes no memory.
result<decoded_data> decode_npy(const reader_request& request);

} // namespace dlrun::data
