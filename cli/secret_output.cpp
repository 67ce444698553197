#include "cli/secret_output.hpp"

#include "base/os_error.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::cli {

result<void> write_secret(const std::string& file, std::string_view text, std::string_view what) {
  base::unique_fd made{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (!made && errno == EEXIST)
    return fail(error_code::bad_usage,
                fmt::format("'{}' exists: remove it, or name another file for {}", file, what));
  if (!made) {
    auto why = base::fail_errno(fmt::format("cannot write {} to '{}'", what, file));
    why.value().code = error_code::bad_usage;
    return why;
  }
  // What a file system tells late (a quota, NFS) it tells when the file is closed.
  if (base::write_all(made.get(), text) && ::close(made.release()) == 0) return {};
  auto why = base::fail_errno(fmt::format("cannot write {} to '{}'", what, file));
  ::unlink(file.c_str()); // a part of it is of no use, and in the way of the next try
  return why;
}

} // namespace dlrun::cli
