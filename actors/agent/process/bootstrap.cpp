#include "actors/agent/process/bootstrap.hpp"

#include "base/os_error.hpp"
#include "base/read_at.hpp"
#include "base/seal_memory.hpp"
#include "base/write_all.hpp"

#include <fcntl.h>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>

namespace dlrun::agent {

namespace {

constexpr int all_seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

} // namespace

result<base::unique_fd> make_bootstrap(std::string_view bytes) {
  base::unique_fd fd(::memfd_create("dlrun:bootstrap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return base::fail_errno("cannot create the memory for a child's bootstrap data");
  if (!base::write_all_at(fd.get(), bytes, 0))
    return base::fail_errno("cannot write a child's bootstrap data");
  if (const int refused = base::seal_memory(fd.get(), all_seals); refused != 0)
    return base::fail_errno("cannot seal a child's bootstrap data", refused);
  return fd;
}

result<std::string> read_bootstrap(int fd, std::size_t bytes_max) {
  struct stat file {};
  if (fd < 3 || ::fcntl(fd, F_GET_SEALS) != all_seals || ::fstat(fd, &file) != 0)
    return fail(
        error_code::bad_usage,
        fmt::format("descriptor {} holds no bootstrap data; this process is meant to be started by dlrun",
                    fd));
  const base::unique_fd owned(fd);
  const auto size = static_cast<std::size_t>(file.st_size);
  if (size > bytes_max)
    return fail(error_code::limit_exceeded,
                fmt::format("bootstrap data of {} bytes; at most {} are accepted", size, bytes_max));
  std::string bytes(size, '\0');
  if (base::read_at(fd, std::as_writable_bytes(std::span{bytes}), 0) != size)
    return base::fail_errno("cannot read the bootstrap data");
  return bytes;
}

} // namespace dlrun::agent
