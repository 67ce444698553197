#include "data/tfrecord_file.hpp"

#include "base/crc32c.hpp"

#include <array>
#include <fmt/format.h>

namespace dlrun::data {
namespace {

template <class Number>
Number little_endian(std::span<const std::uint8_t> bytes) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value |= static_cast<Number>(Number{bytes[i]} << (8 * i));
  return value;
}

template <class Number>
void put_little_endian(Number value, std::string& out) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out += static_cast<char>(value >> (8 * i) & 0xffU);
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

} // namespace

std::string framed_tfrecord(std::string_view record) {
  std::string out;
  out.reserve(record.size() + sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t));
  put_little_endian(std::uint64_t{record.size()}, out);
  put_little_endian(masked_crc32c(bytes_of(out)), out);
  out += record;
  put_little_endian(masked_crc32c(bytes_of(record)), out);
  return out;
}

std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) {
  const std::uint32_t crc = base::crc32c(std::as_bytes(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

result<tfrecord_file> tfrecord_file::open(const std::filesystem::path& file) {
  auto source = byte_source::open(file);
  if (!source) return tl::unexpected(source.error());
  return tfrecord_file(std::move(*source));
}

tl::unexpected<error> tfrecord_file::wrong(const std::string& what) const {
  return fail(error_code::bad_data, fmt::format("{}: byte {}: record {}: {}", name(), offset_, read_, what));
}

result<bool> tfrecord_file::take(std::span<std::uint8_t> out) {
  const auto got = source_.read(out);
  if (!got) return tl::unexpected(got.error());
  if (*got == 0 && !out.empty()) return false;
  if (*got < out.size()) return wrong("the file is truncated");
  return true;
}

result<bool> tfrecord_file::next() {
  std::array<std::uint8_t, 12> head{};
  auto there = take(head);
  if (!there || !*there) return there;
  const auto length = little_endian<std::uint64_t>(std::span(head).first(8));
  if (little_endian<std::uint32_t>(std::span(head).subspan(8)) != masked_crc32c(std::span(head).first(8)))
    return wrong("the checksum of its length does not match; is this a TFRecord file?");
  if (length > record_bytes_max || length > source_.content_bytes_max())
    return wrong(fmt::format("claims {} bytes, more than there can be", length));
  bytes_.resize(static_cast<std::size_t>(length));
  std::array<std::uint8_t, 4> check{};
  for (const std::span<std::uint8_t> part :
       {std::span<std::uint8_t>(bytes_), std::span<std::uint8_t>(check)}) {
    auto got = take(part);
    if (!got) return got;
    if (!*got) return wrong("the file is truncated");
  }
  if (little_endian<std::uint32_t>(check) != masked_crc32c(bytes_))
    return wrong("its checksum does not match");
  offset_ += head.size() + length + check.size();
  ++read_;
  return true;
}

} // namespace dlrun::data
