#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <dlrun/check.hpp>
#include <new>
#include <unistd.h>
#include <utility>

namespace dlrun::transport {

namespace {

constexpr std::uint64_t parameter_magic = 0x6d'61'72'61'70'6c'64'00; // "dlparam"
constexpr std::uint64_t parameter_format = 2;
constexpr std::size_t floats_of_boundary = 16; // 64 bytes

/// Whole pages, wherever in the first of them it begins.
std::size_t buffer_bytes(std::size_t floats) {
  return (floats * sizeof(float) / segment_page_bytes + 2) * segment_page_bytes;
}

std::size_t buffer_offset(std::size_t floats, int index, std::size_t first) {
  return segment_header_bytes + static_cast<std::size_t>(index) * buffer_bytes(floats) +
         first * sizeof(float) % segment_page_bytes;
}

} // namespace

std::size_t parameter_segment_bytes(std::size_t floats) {
  return segment_header_bytes + 2 * buffer_bytes(floats);
}

segment_part parameter_part(std::size_t floats, int buffer, std::size_t first) {
  constexpr auto words = offsetof(parameter_header, buffers);
  const auto word = words + static_cast<std::size_t>(buffer) * sizeof(parameter_buffer_word);
  return {{{{0, words}, {word, sizeof(parameter_buffer_word)}}},
          {buffer_offset(floats, buffer, first), floats * sizeof(float)}};
}

namespace {

/// Of what nobody writes any more, or of what its reader checks again.
std::vector<whole_version> versions_in(const parameter_header& header) {
  std::vector<whole_version> all;
  for (const auto& word : header.buffers) {
    const auto sequence = word.sequence.load(std::memory_order_acquire);
    if (sequence % 2 == 0 && sequence != 0)
      all.push_back(
          {{word.timeline.load(std::memory_order_relaxed)}, {word.version.load(std::memory_order_relaxed)}});
  }
  std::ranges::sort(all, std::ranges::greater{});
  return all;
}

} // namespace

std::vector<whole_version> whole_versions(int fd) {
  parameter_header header{};
  if (::pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return {};
  if (header.magic != parameter_magic || header.format != parameter_format) return {};
  return versions_in(header);
}

parameter_writer::parameter_writer(segment segment, std::size_t floats, std::size_t first)
    : segment_(std::move(segment))
    , floats_(floats)
    , first_(first) {}

result<parameter_writer> parameter_writer::create(std::size_t floats, std::size_t first) {
  if (auto ok = check_segment_floats("parameter", floats, parameter_floats_max); !ok)
    return tl::unexpected(ok.error());
  return lay_out(segment::create("parameters", parameter_segment_bytes(floats)), floats, first);
}

result<parameter_writer> parameter_writer::create_in(base::unique_fd memory, std::size_t floats,
                                                     std::size_t first, std::size_t floats_max) {
  if (auto ok = check_segment_floats("parameter", floats, floats_max); !ok) return tl::unexpected(ok.error());
  const auto bytes = parameter_segment_bytes(floats);
  return lay_out(segment::create_in(std::move(memory), bytes, bytes), floats, first);
}

result<parameter_writer> parameter_writer::lay_out(result<segment> memory, std::size_t floats,
                                                   std::size_t first) {
  DLRUN_CHECK(first % floats_of_boundary == 0, "parameters from float {} on are not aligned", first);
  if (!memory) return tl::unexpected(memory.error());
  auto* header = new (memory->mutable_bytes().data())
      parameter_header{parameter_magic, parameter_format, floats, first, {}};
  for (auto& word : header->buffers) word.sequence.store(1, std::memory_order_release);
  return parameter_writer(std::move(*memory), floats, first);
}

parameter_header& parameter_writer::header() {
  return *std::launder(reinterpret_cast<parameter_header*>(segment_.mutable_bytes().data()));
}

void parameter_writer::invalidate(int buffer) {
  auto& sequence = header().buffers[buffer].sequence;
  const auto now = sequence.load(std::memory_order_relaxed);
  // From odd to the next odd as well: a reader may be inside either way.
  sequence.store(now + (now % 2 == 0 ? 1 : 2), std::memory_order_relaxed);
  // The mark must be seen before any of the writes that follow it.
  std::atomic_thread_fence(std::memory_order_release);
}

std::span<float> parameter_writer::begin_write(timeline_id timeline, version_id version) {
  DLRUN_CHECK(writing_ < 0, "version {} is begun while another one is being written", version);
  writing_ = current_ == 0 ? 1 : 0;
  invalidate(writing_);
  auto& word = header().buffers[writing_];
  word.timeline.store(timeline.value, std::memory_order_relaxed);
  word.version.store(version.value, std::memory_order_relaxed);
  auto bytes =
      segment_.mutable_bytes().subspan(buffer_offset(floats_, writing_, first_), floats_ * sizeof(float));
  return {reinterpret_cast<float*>(bytes.data()), floats_};
}

void parameter_writer::publish() {
  DLRUN_CHECK(writing_ >= 0, "publish() without begin_write()");
  auto& sequence = header().buffers[writing_].sequence;
  sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  current_ = std::exchange(writing_, -1);
}

void parameter_writer::abandon() {
  DLRUN_CHECK(writing_ >= 0, "abandon() without begin_write()");
  writing_ = -1;
}

void parameter_writer::withdraw_all() {
  invalidate(0);
  invalidate(1);
  current_ = -1;
  writing_ = -1;
}

std::span<const float> parameter_writer::current() const {
  DLRUN_CHECK(current_ >= 0, "no version has been published yet");
  const auto bytes =
      segment_.bytes().subspan(buffer_offset(floats_, current_, first_), floats_ * sizeof(float));
  return {reinterpret_cast<const float*>(bytes.data()), floats_};
}

parameter_reader::parameter_reader(segment segment, std::size_t floats, std::size_t first)
    : segment_(std::move(segment))
    , floats_(floats)
    , first_(first) {}

result<parameter_reader> parameter_reader::open(segment segment, std::size_t floats, std::size_t first,
                                                std::size_t floats_max) {
  if (auto ok = check_segment_floats("parameter", floats, floats_max); !ok) return tl::unexpected(ok.error());
  if (segment.size() != parameter_segment_bytes(floats))
    return fail(error_code::protocol,
                fmt::format("a segment of {} bytes cannot hold two versions of {} parameters", segment.size(),
                            floats));
  parameter_reader reader(std::move(segment), floats, first);
  const auto& header = reader.header();
  if (header.magic != parameter_magic || header.format != parameter_format || header.floats != floats ||
      header.first != first)
    return fail(error_code::protocol,
                fmt::format("a segment does not begin like one of {} parameters from {} on", floats, first));
  return reader;
}

const parameter_header& parameter_reader::header() const {
  return *std::launder(reinterpret_cast<const parameter_header*>(segment_.bytes().data()));
}

std::span<const float> parameter_reader::buffer(int index) const {
  const auto bytes = segment_.bytes().subspan(buffer_offset(floats_, index, first_), floats_ * sizeof(float));
  return {reinterpret_cast<const float*>(bytes.data()), floats_};
}

std::vector<whole_version> parameter_reader::versions() const { return versions_in(header()); }

std::optional<parameter_view> parameter_reader::view(timeline_id timeline, version_id version) const {
  for (int index = 0; index < 2; ++index) {
    const auto& word = header().buffers[index];
    const auto sequence = word.sequence.load(std::memory_order_acquire);
    if (sequence % 2 == 0 && sequence != 0 &&
        word.timeline.load(std::memory_order_relaxed) == timeline.value &&
        word.version.load(std::memory_order_relaxed) == version.value)
      return parameter_view{buffer(index), index, sequence};
  }
  return std::nullopt;
}

bool parameter_reader::unchanged(const parameter_view& view) const {
  // What was read must have been read before the mark is looked at again.
  std::atomic_thread_fence(std::memory_order_acquire);
  return header().buffers[view.buffer].sequence.load(std::memory_order_relaxed) == view.sequence;
}

result<void> parameter_reader::map_again(int buffer, std::size_t offset, std::size_t bytes,
                                         std::byte* address) const {
  return segment_.map_again(buffer_offset(floats_, buffer, first_) + offset, bytes, address);
}

bool parameter_reader::copy(timeline_id timeline, version_id version, std::span<float> out) const {
  DLRUN_CHECK(out.size() == floats_, "{} floats of room for {} parameters", out.size(), floats_);
  const auto found = view(timeline, version);
  if (!found) return false;
  // Not std::copy, which may become a loop: of much, memcpy writes past the caches, where a store
  // would read first.
  std::memcpy(out.data(), found->values.data(), out.size_bytes());
  return unchanged(*found);
}

} // namespace dlrun::transport
