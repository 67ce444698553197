/// The content of a file from its first byte to its last, plain or gzip alike.
#pragma once

#include "data/blob.hpp"
#include "data/gzip_stream.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace dlrun::data {

/// Reads a file once. gzip is told by its first two bytes, not by the file's name. Not thread-safe.
class byte_source {
public:
  /// @returns bad_data or system as blob::map_file does.
  static result<byte_source> open(const std::filesystem::path& file);

  /// Fills `out` completely, or less when the content ends, be it that the file was shortened; the
  /// end of gzip content includes its checksum.
  result<std::size_t> read(std::span<std::uint8_t> out);

  const std::string& name() const { return raw_->name(); }
  bool compressed() const { return gzip_ != nullptr; }
  /// Bytes of the file as it is stored.
  std::uint64_t stored_bytes() const { return raw_->bytes().size(); }
  /// Most bytes that the content can have, from what is stored.
  std::uint64_t content_bytes_max() const { return stored_bytes() * (compressed() ? deflate_ratio_max : 1); }
  /// Gives the file away as it is stored: mapped.
  blob take_raw() && { return std::move(*raw_); }

private:
  result<std::size_t> read_file(std::span<std::uint8_t> out, std::uint64_t offset) const;
  result<std::size_t> read_plain(std::span<std::uint8_t> out);

  std::unique_ptr<blob> raw_;
  std::unique_ptr<gzip_stream> gzip_;
  // Of plain content.
  std::uint64_t read_ = 0;
  std::vector<std::uint8_t> buffer_; ///< the last that was read in small pieces
  std::size_t taken_ = 0;            ///< of these
};

} // namespace dlrun::data
