#include "data/byte_source.hpp"

#include <algorithm>

namespace dlrun::data {

result<byte_source> byte_source::open(const std::filesystem::path& file) {
  auto raw = blob::map_file(file);
  if (!raw) return tl::unexpected(raw.error());
  byte_source made;
  made.raw_ = std::make_unique<blob>(std::move(*raw));
  const auto start = made.raw_->bytes();
  if (start.size() >= 2 && start[0] == 0x1f && start[1] == 0x8b)
    made.gzip_ = std::make_unique<gzip_stream>(made.raw_->fd(), made.raw_->name());
  return made;
}

result<std::size_t> byte_source::read(std::span<std::uint8_t> out) {
  if (gzip_ != nullptr) return gzip_->read(out);
  const auto left = raw_->bytes().subspan(static_cast<std::size_t>(read_));
  const auto count = std::min(left.size(), out.size());
  std::copy_n(left.begin(), count, out.begin());
  read_ += count;
  return count;
}

} // namespace dlrun::data
