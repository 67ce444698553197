/// Writes safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dlrun::weights {

/// A tensor to be written. Its bytes are borrowed for the duration of the call.
struct written_tensor {
  std::string name;
  std::string dtype; ///< "F32", "I64", ...
  std::vector<std::int64_t> extents;
  std::span<const std::byte> bytes; ///< row by row, little-endian; as many as extents and dtype say
};

/// Can a file of these tensors be read again, here and by the format's own library? Their bytes may
/// be missing. @returns limit_exceeded where the names, shapes and places take more than
/// header_bytes_max.
result<void> check_header(std::span<const written_tensor> tensors,
                          const std::map<std::string, std::string>& metadata);

/// Writes `tensors` in this order, and `metadata`, so that `file` appears whole or not at all. Put
/// tensors of larger elements first: each then begins at a multiple of its elements' size. @returns
/// system; limit_exceeded as check_header().
result<void> write_safetensors(const std::filesystem::path& file, std::span<const written_tensor> tensors,
                               const std::map<std::string, std::string>& metadata);

} // namespace dlrun::weights
