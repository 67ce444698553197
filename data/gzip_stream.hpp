/// Inflates a gzip file with bounded memory.
#pragma once

#include <array>
#include <cstdint>
#include <dlrun/error.hpp>
#include <span>
#include <string>
#include <zlib.h>

namespace dlrun::data {

/// Deflate cannot expand more than this (zlib's technical notes, "Maximum Compression Factor").
inline constexpr std::uint64_t deflate_ratio_max = 1032;

/// Reads a gzip file (RFC 1952) from a descriptor, member after member, in pieces of at most 64
/// KiB. Not thread-safe. Does not own the descriptor.
class gzip_stream {
public:
  gzip_stream(int fd, std::string name);
  ~gzip_stream();
  gzip_stream(const gzip_stream&) = delete;
  gzip_stream& operator=(const gzip_stream&) = delete;

  /// Fills `out` completely, or less when the content ends.
  /// @returns bytes written; bad_data for truncated or damaged input, naming the byte offset in the
  /// compressed file.
  result<std::size_t> read(std::span<std::uint8_t> out);

  /// Bytes of the compressed file consumed so far.
  std::uint64_t offset() const { return read_ - stream_.avail_in; }

private:
  result<void> refill();
  result<void> start_next_member();
  tl::unexpected<error> damaged(const std::string& what) const;

  int fd_;
  std::string name_;
  z_stream stream_{};
  std::array<std::uint8_t, 64 * 1024> input_;
  std::uint64_t read_ = 0;
  bool file_ended_ = false;
  bool between_members_ = false;
  bool ended_ = false;
};

} // namespace dlrun::data
