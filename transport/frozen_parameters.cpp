#include "transport/frozen_parameters.hpp"

#include <cstring>
#include <dlrun/check.hpp>

namespace dlrun::transport {
namespace {

constexpr std::uint64_t frozen_magic = 0x6e'7a'6f'72'66'6c'64'00; // "dlfrozn"
constexpr std::uint64_t frozen_format = 1;
constexpr std::size_t frozen_floats_max = segment_bytes_max_default / sizeof(float) / 2;

/// First page of the segment; the floats follow.
struct frozen_header {
  std::uint64_t magic = 0; ///< 0 until it is sealed
  std::uint64_t format = 0;
  std::uint64_t floats = 0;
  std::uint64_t timeline = 0;
  std::uint64_t version = 0;
};
static_assert(sizeof(frozen_header) <= segment_header_bytes);

} // namespace

std::size_t frozen_parameters_bytes(std::size_t floats) {
  return segment_header_bytes + floats * sizeof(float);
}

segment_part frozen_part(std::size_t floats) {
  return {{{{0, sizeof(frozen_header)}, {}}}, {segment_header_bytes, floats * sizeof(float)}};
}

frozen_parameters_writer::frozen_parameters_writer(segment segment, std::size_t floats)
    : segment_(std::move(segment))
    , floats_(floats) {}

result<frozen_parameters_writer> frozen_parameters_writer::create(std::size_t floats) {
  if (auto ok = check_segment_floats("frozen parameter", floats, frozen_floats_max); !ok)
    return tl::unexpected(ok.error());
  auto memory = segment::create("frozen parameters", frozen_parameters_bytes(floats));
  if (!memory) return tl::unexpected(memory.error());
  return frozen_parameters_writer(std::move(*memory), floats);
}

std::span<float> frozen_parameters_writer::values() {
  const auto bytes = segment_.mutable_bytes().subspan(segment_header_bytes);
  return {reinterpret_cast<float*>(bytes.data()), floats_};
}

void frozen_parameters_writer::seal_as(timeline_id timeline, version_id version) {
  const frozen_header header{frozen_magic, frozen_format, floats_, timeline.value, version.value};
  std::memcpy(segment_.mutable_bytes().data(), &header, sizeof header);
}

result<std::span<const float>> frozen_parameters(const segment& from, std::size_t floats,
                                                 timeline_id timeline, version_id version) {
  if (floats > frozen_floats_max || from.size() != frozen_parameters_bytes(floats))
    return fail(error_code::protocol,
                fmt::format("a segment of {} bytes cannot hold {} frozen parameters", from.size(), floats));
  frozen_header header;
  std::memcpy(&header, from.bytes().data(), sizeof header);
  if (header.magic != frozen_magic || header.format != frozen_format || header.floats != floats)
    return fail(error_code::protocol,
                fmt::format("a segment does not begin like one of {} frozen parameters", floats));
  if (header.timeline != timeline.value || header.version != version.value)
    return fail(error_code::protocol,
                fmt::format("a segment holds version {} of timeline {}, not version {} of timeline {}",
                            header.version, header.timeline, version, timeline));
  const auto bytes = from.bytes().subspan(segment_header_bytes);
  return std::span{reinterpret_cast<const float*>(bytes.data()), floats};
}

} // namespace dlrun::transport
