#include "actors/agent/event_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

constexpr int file_mode = 0666; // less the umask
/// Of lines that wait. Those beyond are lost.
constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;

} // namespace

event_file::event_file(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, file_mode))
    , failure_(fd_ ? 0 : errno) {}

void event_file::mend_last_line(const std::filesystem::path& path) {
  const base::unique_fd fd{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)};
  struct stat about {};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return;
  const auto length =
      static_cast<std::size_t>(std::min<off_t>(about.st_size, static_cast<off_t>(waiting_bytes_max)));
  std::string end(length, '\0');
  if (::pread(fd.get(), end.data(), length, about.st_size - static_cast<off_t>(length)) !=
      static_cast<ssize_t>(length))
    return;
  const auto newline = end.rfind('\n');
  const auto last =
      newline == std::string::npos ? std::string_view{end} : std::string_view{end}.substr(newline + 1);
  if (last.empty()) return;
  [[maybe_unused]] const auto mended =
      nlohmann::json::accept(last) ? ::pwrite(fd.get(), "\n", 1, about.st_size)
                                   : ::ftruncate(fd.get(), about.st_size - static_cast<off_t>(last.size()));
}

void event_file::append(const std::string& line) {
  if (waiting_.size() + line.size() <= waiting_bytes_max) waiting_ += line;
  flush();
}

void event_file::flush() {
  struct stat before {};
  if (waiting_.empty() || !fd_ || ::fstat(fd_.get(), &before) != 0) return;
  const auto written = ::write(fd_.get(), waiting_.data(), waiting_.size());
  if (written == static_cast<ssize_t>(waiting_.size())) {
    waiting_.clear();
    failure_ = 0;
  } else if (written < 0) {
    failure_ = errno;
  } else { // the disk was full in the middle of a line
    failure_ = ENOSPC;
    [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), before.st_size);
  }
}

} // namespace dlrun::agent
