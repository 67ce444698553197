/// The head of a safetensors file: which tensors lie where.
/// Format: https://github.com/huggingface/safetensors, "Format" in its README: the length of the head
/// (uint64, little-endian), the head (JSON), the bytes of the tensors.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::weights {

/// A larger head is refused unread: names and places of a hundred thousand tensors take less.
inline constexpr std::uint64_t header_bytes_max = std::uint64_t{16} << 20;

/// A tensor as a file holds it.
struct stored_tensor {
  std::string name;
  std::string dtype; ///< as in the file: "F32", "BF16", "I64"
  std::vector<std::int64_t> extents;
  std::uint64_t elements = 0;
  std::uint64_t offset = 0; ///< in the bytes behind the head
  std::uint64_t bytes = 0;
};

struct safetensors_header {
  std::vector<stored_tensor>
      tensors; ///< in the order in which their bytes lie; they fill the data without gaps
  std::map<std::string, std::string> metadata;
};

/// Bytes of one element; 0 for a type that the format does not have.
std::uint32_t bytes_of(std::string_view dtype);

/// Reads and checks a head, for a file with `data_bytes` behind it. `file` is what errors call it.
/// @returns bad_data when it is no JSON of this form, a name comes twice, a dtype is unknown, or sizes and
/// places do not agree with each other and with the file.
result<safetensors_header> parse_header(std::string_view json, std::uint64_t data_bytes,
                                        const std::string& file);

} // namespace dlrun::weights
