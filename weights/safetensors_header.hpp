/// The head of a safetensors file: which tensors lie where. Format:
/// https://github.com/huggingface/safetensors, "Format" in its README: the length of the head
/// (uint64, little-endian), the head (JSON), the bytes of the tensors.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::weights {

/// A larger head is refused unread, as the format's own library refuses it.
inline constexpr std::uint64_t header_bytes_max = 100'000'000;

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

/// Bits of one element; 0 for a type that is not known here.
std::uint32_t bits_of(std::string_view dtype);
/// Bytes of `elements` elements. @returns nothing where they do not fill whole bytes, are more than
/// 2^64, or the type is not known.
std::optional<std::uint64_t> bytes_of(std::string_view dtype, std::uint64_t elements);

/// Reads and checks a head, for a file with `data_bytes` behind it. `file` is what errors call it.
/// A dtype that is not known here is taken for one of a later version of the format: of such a
/// tensor the place is checked, but not the size. So is a further key of a tensor, which is passed
/// over.
/// @returns bad_data when it is no JSON of this form, a name comes twice, or sizes and places do
/// not agree with each other and with the file.
result<safetensors_header> parse_header(std::string_view json, std::uint64_t data_bytes,
                                        const std::string& file);

} // namespace dlrun::weights
