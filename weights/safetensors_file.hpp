/// Reads the tensors of a safetensors file.
#pragma once

#include "base/unique_fd.hpp"
#include "weights/safetensors_header.hpp"

#include <filesystem>
#include <span>
#include <unordered_map>

namespace dlrun::weights {

/// An open file whose head was read and checked. Its tensors are read when they are asked for. Move
/// only; reading is thread-safe. The file must not be written to while it is open: replace it by
/// another instead.
class safetensors_file {
public:
  /// @returns bad_data when there is no such file or it is not whole, system when it cannot be
  ///   read.
  static result<safetensors_file> open(const std::filesystem::path& file);
  /// The same from a descriptor, which is taken over, also on failure. `name` is what errors call
  /// it.
  static result<safetensors_file> from_fd(base::unique_fd fd, std::string name);

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  /// By the places of their bytes.
  const std::vector<stored_tensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// The tensor of that name, or null.
  const stored_tensor* find(const std::string& name) const;

  /// Fills `out` with the elements of `tensor` (one of tensors()) from `first` on, which must be
  /// there. F64, F16 and BF16 are converted; F64 is rounded to the nearest float.
  /// @returns bad_data for a dtype that holds no such numbers, or when the file became shorter;
  /// system when it cannot be read.
  result<void> read(const stored_tensor& tensor, std::uint64_t first, std::span<float> out) const;

private:
  safetensors_file(base::unique_fd fd, std::string name, std::uint64_t data_begin, safetensors_header header);

  base::unique_fd fd_;
  std::string name_;
  std::uint64_t data_begin_ = 0;
  safetensors_header header_;
  std::unordered_map<std::string, std::size_t> by_name_; ///< places in the header's list
};

/// Can tensors of this dtype be read as floats: F32, F64, F16, BF16?
bool is_float(std::string_view dtype);

} // namespace dlrun::weights
