#include "base/small_file.hpp"

#include "base/os_error.hpp"
#include "base/read_at.hpp"
#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <span>
#include <sys/stat.h>

namespace dlrun::base {

result<std::optional<std::string>> read_small_file(const std::filesystem::path& file, std::size_t most) {
  const auto what = fmt::format("cannot read '{}'", file.string());
  const unique_fd opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!opened && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!opened) return fail_errno(what);
  struct stat about {};
  if (::fstat(opened.get(), &about) != 0) return fail_errno(what);
  if (!S_ISREG(about.st_mode)) return fail(error_code::system, what + ": it is no file");
  // Of some files, as those in /proc, the size is not known before.
  std::string all(std::min(static_cast<std::size_t>(about.st_size), most) + 1, '\0');
  std::size_t had = 0;
  for (;;) {
    const auto rest = std::as_writable_bytes(std::span{all}.subspan(had));
    const auto got = read_at(opened.get(), rest, had);
    if (!got) return fail_errno(what);
    had += *got;
    if (had > most)
      return fail(error_code::limit_exceeded, fmt::format("{}: it has more than {} bytes", what, most));
    if (*got < rest.size()) break;
    all.resize(std::min(2 * had, most + 1));
  }
  all.resize(had);
  return all;
}

} // namespace dlrun::base
