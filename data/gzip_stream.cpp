#include "data/gzip_stream.hpp"

#include "data/file_errors.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <limits>
#include <unistd.h>

namespace dlrun::data {

gzip_stream::gzip_stream(int fd, std::string name)
    : fd_(fd)
    , name_(std::move(name)) {
  constexpr int gzip_only = 16 + MAX_WBITS;
  const int outcome = inflateInit2(&stream_, gzip_only);
  DLRUN_CHECK(outcome == Z_OK, "zlib refuses to start: {}", outcome);
}

gzip_stream::~gzip_stream() { inflateEnd(&stream_); }

tl::unexpected<error> gzip_stream::damaged(const std::string& what) const {
  return fail(error_code::bad_data,
              fmt::format("{}: {} at byte {} of the compressed file", name_, what, offset()));
}

result<void> gzip_stream::refill() {
  if (stream_.avail_in > 0 || file_ended_) return {};
  ssize_t got = 0;
  do {
    got = ::read(fd_, input_.data(), input_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_failure("cannot read", name_);
  file_ended_ = got == 0;
  read_ += static_cast<std::uint64_t>(got);
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(got);
  return {};
}

// A gzip file may be several compressed members one after the other; what follows the last one must
// be nothing.
result<void> gzip_stream::start_next_member() {
  if (auto filled = refill(); !filled) return filled;
  if (stream_.avail_in == 0) {
    ended_ = true;
    return {};
  }
  if (*stream_.next_in != 0x1f) return damaged("trailing bytes that are not gzip");
  inflateReset(&stream_);
  between_members_ = false;
  return {};
}

result<std::size_t> gzip_stream::read(std::span<std::uint8_t> out) {
  std::size_t written = 0;
  while (!ended_ && written < out.size()) {
    if (between_members_) {
      if (auto started = start_next_member(); !started) return tl::unexpected(started.error());
      continue;
    }
    if (auto filled = refill(); !filled) return tl::unexpected(filled.error());
    const std::size_t piece = std::min<std::size_t>(out.size() - written, std::numeric_limits<uInt>::max());
    stream_.next_out = out.data() + written;
    stream_.avail_out = static_cast<uInt>(piece);
    const int outcome = inflate(&stream_, Z_NO_FLUSH);
    written += piece - stream_.avail_out;
    if (outcome == Z_STREAM_END)
      between_members_ = true;
    else if (outcome == Z_BUF_ERROR && file_ended_)
      return damaged("the file is truncated");
    else if (outcome != Z_OK && outcome != Z_BUF_ERROR)
      return damaged(fmt::format("damaged gzip data ({})", stream_.msg != nullptr ? stream_.msg : "unknown"));
  }
  return written;
}

} // namespace dlrun::data
