/// TensorFlow's record files.
#pragma once

#include "data/byte_source.hpp"

#include <string>
#include <string_view>

namespace dlrun::data {

/// The records of a TFRecord file, plain or gzip, one after the other. Each is an 8-byte
/// little-endian length, its masked CRC32C, the bytes, and theirs; the mask is rotation by 15 bits
/// and adding 0xa282ead8 (tensorflow/core/lib/io/record_writer.h). Not thread-safe; memory is that
/// of the largest record.
class tfrecord_file {
public:
  static constexpr std::uint64_t record_bytes_max = std::uint64_t{256} << 20;

  static result<tfrecord_file> open(const std::filesystem::path& file);

  /// The next record; valid until the next call. @returns false at the end; bad_data naming file,
  /// byte (of the content) and record.
  result<bool> next();

  std::span<const std::uint8_t> record() const { return bytes_; }
  /// Number, from 0, of the record that next() read last.
  std::uint64_t number() const { return read_ - 1; }
  const std::string& name() const { return source_.name(); }

private:
  explicit tfrecord_file(byte_source source)
      : source_(std::move(source)) {}
  /// Fills `out`; false when there is nothing left at all.
  result<bool> take(std::span<std::uint8_t> out);
  tl::unexpected<error> wrong(const std::string& what) const;

  byte_source source_;
  std::uint64_t read_ = 0;
  std::uint64_t offset_ = 0;
  std::vector<std::uint8_t> bytes_;
};

/// A record as it stands in such a file, with its length and checksums.
std::string framed_tfrecord(std::string_view record);

/// CRC32C as these files store it.
std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes);

} // namespace dlrun::data
