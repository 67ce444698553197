/// Bytes of a data set, wherever they live.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <filesystem>
#include <span>
#include <string>

namespace dlrun::data {

/// Read-only bytes that are mapped from a file, shared through an inherited descriptor, or held in
/// memory. Owns the mapping and the descriptor; move only. Reading is thread-safe, the bytes never
/// change.
class blob {
public:
  blob() = default;
  blob(blob&& other) noexcept;
  blob& operator=(blob&& other) noexcept;
  blob(const blob&) = delete;
  blob& operator=(const blob&) = delete;
  ~blob();

  /// Maps a whole regular file. The file must not be shortened while it is mapped.
  /// @returns system if it cannot be opened or mapped, bad_data if it is not a regular file.
  static result<blob> map_file(const std::filesystem::path& file);

  /// Takes ownership of `fd`, also on failure, and maps what it refers to: a file, or a sealed
  /// memfd that a parent process left open (see decode_idx_to_memfd). `name` is what errors call
  /// it. A memfd that its sender could still shrink is refused: touching the lost part would kill
  /// the reader.
  static result<blob> from_fd(int fd, std::string name);

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  /// Descriptor behind the bytes, or -1. It is close-on-exec: a parent that hands it to a child
  /// duplicates it into the child's table (posix_spawn_file_actions_adddup2 to another number
  /// clears the flag). Owned by the blob.
  int fd() const { return fd_; }
  /// The file the bytes came from, for errors.
  const std::string& name() const { return name_; }

private:
  void release() noexcept;

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;
  bool mapped_ = false;
  std::string name_;
};

} // namespace dlrun::data
