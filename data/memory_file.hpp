/// Memory that is filled once, sealed, and shared with other processes.
#pragma once

#include "data/blob.hpp"

namespace dlrun::data {

/// An anonymous memory file of fixed size, writable until seal(). Move only; not thread-safe.
class memory_file {
public:
  /// Reserves `bytes` (at least 1), zeroes. @returns system when the memory is not there. `name` is
  /// the file whose content goes in, for errors.
  static result<memory_file> create(std::uint64_t bytes, std::string name);

  memory_file(memory_file&& other) noexcept;
  memory_file& operator=(memory_file&&) = delete;
  ~memory_file();

  std::span<std::uint8_t> bytes() { return {data_, size_}; }

  /// Seals it against every change (F_SEAL_SHRINK | GROW | WRITE | SEAL); bytes() is over.
  result<blob> seal() &&;

private:
  memory_file() = default;

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;
  std::string name_;
};

} // namespace dlrun::data
