#include "data/idx_reader.hpp"

#include "data/block_digests.hpp"
#include "data/byte_source.hpp"
#include "data/memory_file.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::data {
namespace {

constexpr std::uint8_t unsigned_bytes = 0x08;
constexpr std::uint64_t header_prefix = 4;
constexpr std::uint8_t dims_max = 8;
/// Decoded at a time.
constexpr std::size_t decoded_piece_bytes = std::size_t{1} << 20;
// Larger than any single file this format is used for, small enough that sums of it never overflow.
constexpr std::uint64_t payload_bytes_max = std::uint64_t{1} << 46;

std::string type_name(std::uint8_t type) {
  switch (type) {
  case 0x09: return "signed bytes";
  case 0x0B: return "16-bit integers";
  case 0x0C: return "32-bit integers";
  case 0x0D: return "32-bit floats";
  case 0x0E: return "64-bit floats";
  default: return "an unknown type";
  }
}

tl::unexpected<error> bad(const std::string& name, std::uint64_t offset, const std::string& what) {
  return fail(error_code::bad_data, fmt::format("{}: byte {}: {}", name, offset, what));
}

tl::unexpected<error> size_mismatch(const std::string& name, const idx_header& header,
                                    std::uint64_t present) {
  const std::string promise =
      fmt::format("the head promises {} values ({}), {} bytes in all", header.payload_bytes,
                  fmt::join(header.dims, " x "), header.total_bytes());
  if (present < header.total_bytes())
    return bad(name, present, fmt::format("the file is truncated: {}, {} are there", promise, present));
  return bad(name, header.total_bytes(), fmt::format("trailing bytes: {}", promise));
}

/// Is it possible at all that this file holds what the head says? Decided before memory is taken.
result<void> check_plausible(const byte_source& source, const idx_header& header) {
  const std::uint64_t stored = source.stored_bytes();
  if (!source.compressed()) {
    if (stored != header.total_bytes()) return size_mismatch(source.name(), header, stored);
    return {};
  }
  if (header.total_bytes() / deflate_ratio_max > stored)
    return bad(source.name(), header_prefix,
               fmt::format("the head promises {} bytes, more than {} compressed bytes can hold",
                           header.total_bytes(), stored));
  return {};
}

result<void> fill(byte_source& source, const idx_header& header, std::span<const std::uint8_t> head,
                  std::span<std::uint8_t> out, const std::string& name, block_hasher* hasher) {
  std::copy(head.begin(), head.end(), out.begin());
  for (auto done = head.size(); done < out.size();) {
    const auto piece = out.subspan(done, std::min(decoded_piece_bytes, out.size() - done));
    const auto got = source.read(piece);
    if (!got) return tl::unexpected(got.error());
    done += *got;
    if (*got < piece.size()) return size_mismatch(name, header, done);
    if (hasher != nullptr && done > header.header_bytes) hasher->filled(done - header.header_bytes);
  }
  std::array<std::uint8_t, 1> beyond{};
  const auto got = source.read(beyond); // also makes gzip compare its checksum
  if (!got) return tl::unexpected(got.error());
  if (*got != 0) return size_mismatch(name, header, out.size() + *got);
  return {};
}

} // namespace

result<idx_header> parse_idx_header(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < header_prefix) return bad(name, bytes.size(), "too short for an IDX file");
  if (bytes[0] != 0 || bytes[1] != 0)
    return bad(
        name, 0,
        fmt::format("not an IDX file: it starts with {:02x} {:02x}, not with 00 00", bytes[0], bytes[1]));
  if (bytes[2] != unsigned_bytes)
    return bad(name, 2,
               fmt::format("holds {} (type 0x{:02x}); only unsigned bytes (0x08) are read",
                           type_name(bytes[2]), bytes[2]));
  const std::uint8_t count = bytes[3];
  if (count == 0 || count > dims_max)
    return bad(name, 3, fmt::format("has {} dimensions; 1 to {} are read", count, dims_max));

  idx_header header;
  header.header_bytes = header_prefix + 4 * std::uint64_t{count};
  if (bytes.size() < header.header_bytes) return bad(name, bytes.size(), "the file ends within its head");
  header.payload_bytes = 1;
  for (std::uint8_t i = 0; i < count; ++i) {
    const auto at = bytes.subspan(header_prefix + 4 * std::size_t{i}, 4);
    const std::uint32_t size =
        std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
    const std::uint64_t offset = header_prefix + 4 * std::uint64_t{i};
    if (size == 0)
      return bad(name, offset, fmt::format("dimension {} is 0: there is nothing to train on", i));
    header.dims.push_back(size);
    if (__builtin_mul_overflow(header.payload_bytes, size, &header.payload_bytes) ||
        header.payload_bytes > payload_bytes_max)
      return bad(name, offset, fmt::format("the head promises more than {} TiB", payload_bytes_max >> 40));
  }
  return header;
}

result<idx_view> view_idx(const blob& bytes) {
  auto header = parse_idx_header(bytes.bytes(), bytes.name());
  if (!header) return tl::unexpected(header.error());
  if (bytes.bytes().size() != header->total_bytes())
    return size_mismatch(bytes.name(), *header, bytes.bytes().size());
  const auto values = bytes.bytes().subspan(header->header_bytes);
  return idx_view{std::move(*header), values};
}

namespace {

struct decoded_idx {
  blob bytes;
  std::shared_ptr<const block_digests> digests; ///< null where they were not asked for
};

result<decoded_idx> decode(byte_source& source, memory_budget& memory, bool with_digests) {
  const std::string& name = source.name();
  std::array<std::uint8_t, idx_header_bytes_max> buffer{};
  auto got = source.read(buffer);
  if (!got) return tl::unexpected(got.error());
  auto header = parse_idx_header({buffer.data(), *got}, name);
  if (!header) return tl::unexpected(header.error());
  if (auto plausible = check_plausible(source, *header); !plausible) return tl::unexpected(plausible.error());
  // A tiny file may be over before the longest possible head is.
  if (*got > header->total_bytes()) return size_mismatch(name, *header, *got);
  if (auto taken = memory.take(header->total_bytes(), name); !taken) return tl::unexpected(taken.error());
  auto file = memory_file::create(header->total_bytes(), name);
  if (!file) return tl::unexpected(file.error());
  std::optional<block_hasher> hasher;
  if (with_digests) hasher.emplace(file->bytes().subspan(static_cast<std::size_t>(header->header_bytes)));
  if (auto filled =
          fill(source, *header, {buffer.data(), *got}, file->bytes(), name, hasher ? &*hasher : nullptr);
      !filled)
    return tl::unexpected(filled.error());
  auto digests = hasher ? hasher->finish() : nullptr;
  auto sealed = std::move(*file).seal();
  if (!sealed) return tl::unexpected(sealed.error());
  return decoded_idx{std::move(*sealed), std::move(digests)};
}

/// As open_idx().
result<decoded_idx> open_and_hash(const std::filesystem::path& file, memory_budget& memory,
                                  bool with_digests) {
  auto source = byte_source::open(file);
  if (!source) return tl::unexpected(source.error());
  if (source->compressed()) return decode(*source, memory, with_digests);
  auto raw = std::move(*source).take_raw();
  if (auto view = view_idx(raw); !view) return tl::unexpected(view.error());
  return decoded_idx{std::move(raw), nullptr};
}

result<stored_array> open_array(const std::filesystem::path& file, memory_budget& memory, bool with_digests) {
  auto opened = open_and_hash(file, memory, with_digests);
  if (!opened) return tl::unexpected(opened.error());
  const auto view = view_idx(opened->bytes);
  if (!view) return tl::unexpected(view.error());
  stored_array array;
  array.name = opened->bytes.name();
  array.digests = std::move(opened->digests);
  array.offset = view->header.header_bytes;
  array.dims.assign(view->header.dims.begin(), view->header.dims.end());
  array.memory = std::make_shared<blob>(std::move(opened->bytes));
  return array;
}

} // namespace

result<blob> decode_idx_to_memfd(const std::filesystem::path& file, memory_budget& memory) {
  auto source = byte_source::open(file);
  if (!source) return tl::unexpected(source.error());
  auto decoded = decode(*source, memory, false);
  if (!decoded) return tl::unexpected(decoded.error());
  return std::move(decoded->bytes);
}

result<blob> open_idx(const std::filesystem::path& file, memory_budget& memory) {
  auto opened = open_and_hash(file, memory, false);
  if (!opened) return tl::unexpected(opened.error());
  return std::move(opened->bytes);
}

result<decoded_data> decode_idx(const reader_request& request, memory_budget& memory, bool with_digests) {
  decoded_data data;
  data.kind = request.targets;
  auto records = open_array(request.records, memory, with_digests);
  if (!records) return tl::unexpected(records.error());
  data.records = std::move(*records);
  if (request.with_targets) {
    auto labels = open_array(request.labels, memory, with_digests);
    if (!labels) return tl::unexpected(labels.error());
    data.targets = std::move(*labels);
  }
  return check_decoded(std::move(data));
}

} // namespace dlrun::data
