#include "actors/link/frame.hpp"

#include <cstring>
#include <fmt/format.h>

namespace dlrun::link {
namespace {

result<frame_header> read_header(std::span<const char> bytes) {
  frame_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.bytes < sizeof header || header.bytes > frame_bytes_max)
    return fail(error_code::protocol, fmt::format("a frame of {} bytes: {} to {} are allowed", header.bytes,
                                                  sizeof header, frame_bytes_max));
  if (header.kind < frame_kind::message || header.kind > frame_kind::gone || header.reserved != 0)
    return fail(error_code::protocol,
                fmt::format("a frame of unknown kind {}", static_cast<unsigned>(header.kind)));
  return header;
}

} // namespace

result<void> append_frame(std::vector<char>& out, frame_header header, std::span<const char> payload) {
  const auto bytes = sizeof header + payload.size();
  if (bytes > frame_bytes_max)
    return fail(error_code::limit_exceeded,
                fmt::format("a message of {} bytes: {} are allowed", bytes, frame_bytes_max));
  header.bytes = static_cast<std::uint32_t>(bytes);
  const auto* const begin = reinterpret_cast<const char*>(&header);
  out.insert(out.end(), begin, begin + sizeof header);
  out.insert(out.end(), payload.begin(), payload.end());
  return {};
}

result<void> frame_reader::add(std::span<const char> bytes,
                               const std::function<result<void>(const frame&)>& take) {
  rest_.insert(rest_.end(), bytes.begin(), bytes.end());
  std::span<const char> left = rest_;
  result<void> taken;
  while (taken && left.size() >= sizeof(frame_header)) {
    const auto header = read_header(left);
    if (!header) return tl::unexpected(header.error());
    if (left.size() < header->bytes) break;
    taken = take({*header, left.subspan(sizeof(frame_header), header->bytes - sizeof(frame_header))});
    left = left.subspan(header->bytes);
  }
  rest_.erase(rest_.begin(), rest_.end() - static_cast<std::ptrdiff_t>(left.size()));
  return taken;
}

} // namespace dlrun::link
