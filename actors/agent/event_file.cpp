#include "actors/agent/event_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

constexpr int file_mode = 0644;
/// Of lines that wait. Those beyond are lost.
constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;

} // namespace

event_file::event_file(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, file_mode))
    , failure_(fd_ ? 0 : errno) {}

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
