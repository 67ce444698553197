#include "data/byte_source.hpp"

#include "base/read_at.hpp"
#include "data/file_errors.hpp"

#include <algorithm>
#include <array>

namespace dlrun::data {
namespace {

/// What is asked for in smaller pieces is read in pieces of this.
constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

} // namespace

result<byte_source> byte_source::open(const std::filesystem::path& file) {
  auto raw = blob::map_file(file);
  if (!raw) return tl::unexpected(raw.error());
  byte_source made;
  made.raw_ = std::make_unique<blob>(std::move(*raw));
  std::array<std::uint8_t, 2> start{};
  if (auto got = made.read_file(start, 0); !got) return tl::unexpected(got.error());
  if (start == std::array<std::uint8_t, 2>{0x1f, 0x8b})
    made.gzip_ = std::make_unique<gzip_stream>(made.raw_->fd(), made.raw_->name());
  return made;
}

/// Not from the mapping: of a file that is shortened meanwhile that would end the process (SIGBUS).
result<std::size_t> byte_source::read_file(std::span<std::uint8_t> out, std::uint64_t offset) const {
  const auto got = base::read_at(raw_->fd(), std::as_writable_bytes(out), offset);
  if (!got) return system_failure("cannot read", name());
  return *got;
}

result<std::size_t> byte_source::read_plain(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto rest = out.subspan(done);
    if (const auto ready = std::span(buffer_).subspan(taken_); !ready.empty()) {
      const auto count = std::min(ready.size(), rest.size());
      std::copy_n(ready.begin(), count, rest.begin());
      taken_ += count;
      done += count;
      continue;
    }
    const bool is_direct = rest.size() >= buffer_bytes;
    if (!is_direct) buffer_.resize(buffer_bytes);
    auto got = read_file(is_direct ? rest : std::span(buffer_), read_);
    if (!got) return got;
    read_ += *got;
    if (is_direct) return done + *got;
    buffer_.resize(*got);
    taken_ = 0;
    if (*got == 0) break;
  }
  return done;
}

result<std::size_t> byte_source::read(std::span<std::uint8_t> out) {
  return gzip_ != nullptr ? gzip_->read(out) : read_plain(out);
}

} // namespace dlrun::data
