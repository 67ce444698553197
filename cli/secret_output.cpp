#include "cli/secret_output.hpp"

#include "base/os_error.hpp"
#include "base/write_all.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::cli {

result<secret_file> secret_file::create(const std::string& file, std::string_view what) {
  base::unique_fd made{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (made) return secret_file{std::move(made), file, what};
  if (errno == EEXIST)
    return fail(error_code::bad_usage,
                fmt::format("'{}' exists: remove it, or name another file for {}", file, what));
  auto why = base::fail_errno(fmt::format("cannot write {} to '{}'", what, file));
  why.value().code = error_code::bad_usage;
  return why;
}

secret_file::secret_file(base::unique_fd made, std::string file, std::string_view what)
    : fd_{std::move(made)}
    , file_{std::move(file)}
    , what_{what} {}

/// An empty file, or a part of the secret, is of no use, and in the way of the next try.
secret_file::~secret_file() {
  if (fd_) ::unlink(file_.c_str());
}

/// What a file system tells late (a quota, NFS) it tells when the file is closed.
result<void> secret_file::write(std::string_view text) {
  auto fd = std::move(fd_);
  if (base::write_all(fd.get(), text) && ::close(fd.release()) == 0) return {};
  auto why = base::fail_errno(fmt::format("cannot write {} to '{}'", what_, file_));
  ::unlink(file_.c_str());
  return why;
}

result<void> write_secret(const std::string& file, std::string_view text, std::string_view what) {
  auto made = secret_file::create(file, what);
  return made ? made->write(text) : tl::unexpected(made.error());
}

} // namespace dlrun::cli
