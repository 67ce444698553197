#include "job/atomic_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::job {
namespace {

tl::unexpected<error> cannot(const char* what, const std::string& file) {
  return fail(error_code::system, fmt::format("cannot {} {}: {}", what, file, std::strerror(errno)));
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

} // namespace

result<void> write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  return write_file_atomically(file, std::span{&content, 1});
}

result<void> write_file_atomically(const std::filesystem::path& file,
                                   std::span<const std::string_view> parts) {
  // A name of its own for each writer, so that two at once do not mix their bytes.
  std::string temporary = file.string() + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return cannot("create a file beside", file.string());
  constexpr mode_t readable_by_all = 0644;
  const auto write_part = [fd](std::string_view part) { return write_all(fd, part); };
  const bool written =
      ::fchmod(fd, readable_by_all) == 0 && std::ranges::all_of(parts, write_part) && ::fsync(fd) == 0;
  const int problem = errno;
  ::close(fd);
  errno = problem;
  if (!written || ::rename(temporary.c_str(), file.c_str()) != 0) {
    auto failure = cannot("write", file.string());
    ::unlink(temporary.c_str());
    return failure;
  }
  return {};
}

} // namespace dlrun::job
