/// IDX, the format of MNIST and its relatives, plain or gzip-compressed. Layout: 0 0 TYPE N, then N
/// big-endian 32-bit sizes, then the values, last dimension fastest
/// (http://yann.lecun.com/exdb/mnist, "The IDX file format"). Only unsigned bytes (TYPE 0x08) are
/// read.
#pragma once

#include "data/blob.hpp"
#include "data/decoded.hpp"
#include "data/memory_budget.hpp"
#include <dlrun/reader.hpp>

namespace dlrun::data {

/// What the head of an IDX file says.
struct idx_header {
  /// Sizes, outermost (number of records) first. One to eight of them, none zero.
  std::vector<std::uint32_t> dims;
  /// Bytes before the first value: 4 + 4 * dims.size().
  std::uint64_t header_bytes = 0;
  /// Number of values, one byte each.
  std::uint64_t payload_bytes = 0;

  std::uint64_t total_bytes() const { return header_bytes + payload_bytes; }
};

/// Values of an IDX file. Refers to the blob it was made from.
struct idx_view {
  idx_header header;
  std::span<const std::uint8_t> values;
};

/// Longest possible header: 4 bytes and 8 sizes.
inline constexpr std::size_t idx_header_bytes_max = 36;

/// Reads and checks the head at the start of `bytes`; nothing is allocated by sizes it claims.
/// @returns bad_data naming `name` and the byte offset.
result<idx_header> parse_idx_header(std::span<const std::uint8_t> bytes, const std::string& name);

/// Interprets a whole decoded IDX file: the head must be right and the size exactly what it says.
result<idx_view> view_idx(const blob& bytes);

/// Decodes an IDX file, gzip or plain, into an anonymous memory file sealed against every change
/// (F_SEAL_SHRINK | GROW | WRITE | SEAL), so that one process decodes and its children map the same
/// pages. Memory is taken only after the sizes were found plausible; inflation stops at exactly the
/// size that the IDX head says, which `memory` must allow.
/// @returns bad_data naming file and byte offset: truncation, trailing bytes, checksum mismatch,
///   wrong type.
result<blob> decode_idx_to_memfd(const std::filesystem::path& file, memory_budget& memory);

/// The cheapest blob with the decoded content of `file`: plain files are mapped, gzip files decoded
/// to a memfd.
result<blob> open_idx(const std::filesystem::path& file, memory_budget& memory);

/// The arrays of records and labels. Labels of more than one dimension are values or an error.
/// `with_digests`: those of arrays that are decoded are made meanwhile.
result<decoded_data> decode_idx(const reader_request& request, memory_budget& memory,
                                bool with_digests = false);

} // namespace dlrun::data
