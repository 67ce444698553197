#include "base/atomic_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::base {
namespace {

/// What another place to write to, named by the user, would mend.
bool is_of_the_place(int number) {
  return number == EACCES || number == ENOENT || number == ENOTDIR || number == EROFS;
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

result<int> create_beside(const std::filesystem::path& file, std::string& temporary) {
  // A name of its own for each writer, so that two at once do not mix their bytes.
  temporary = file.string() + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0)
    return fail(is_of_the_place(errno) ? error_code::bad_usage : error_code::system,
                fmt::format("cannot create a file beside {}: {}", file.string(), std::strerror(errno)));
  constexpr mode_t readable_by_all = 0644;
  ::fchmod(fd, readable_by_all);
  return fd;
}

result<void> write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  return write_file_atomically(file, std::span{&content, 1});
}

result<void> write_file_atomically(const std::filesystem::path& file,
                                   std::span<const std::string_view> parts) {
  std::string temporary;
  const auto created = create_beside(file, temporary);
  if (!created) return tl::unexpected(created.error());
  const int fd = *created;
  const auto write_part = [fd](std::string_view part) { return write_all(fd, part); };
  const bool written = std::ranges::all_of(parts, write_part) && ::fsync(fd) == 0;
  const int problem = errno;
  ::close(fd);
  errno = problem;
  if (!written || ::rename(temporary.c_str(), file.c_str()) != 0) {
    auto failure =
        fail(error_code::system, fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
    ::unlink(temporary.c_str());
    return failure;
  }
  return {};
}

} // namespace dlrun::base
