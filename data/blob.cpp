#include "data/blob.hpp"

#include "data/file_errors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dlrun::data {

blob::blob(blob&& other) noexcept { *this = std::move(other); }

blob& blob::operator=(blob&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  fd_ = std::exchange(other.fd_, -1);
  mapped_ = std::exchange(other.mapped_, false);
  name_ = std::move(other.name_);
  return *this;
}

blob::~blob() { release(); }

void blob::release() noexcept {
  if (mapped_) ::munmap(const_cast<std::uint8_t*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
  mapped_ = false;
  fd_ = -1;
}

result<blob> blob::map_file(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a pipe by mistake must not wait for its writer; it means nothing for
  // regular files.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_failure("cannot open", file.string());
  return from_fd(fd, file.string());
}

result<blob> blob::from_fd(int fd, std::string name) {
  blob made;
  made.fd_ = fd;
  made.name_ = std::move(name);
  struct stat about {};
  if (::fstat(fd, &about) != 0) {
    made.fd_ = -1;
    return system_failure("cannot use the descriptor of", made.name_);
  }
  if (!S_ISREG(about.st_mode)) return fail(error_code::bad_data, made.name_ + ": not a regular file");
  // Memory files have no name in any folder; files of tmpfs answer F_GET_SEALS as well, others
  // refuse it.
  const bool memory = about.st_nlink == 0 && ::fcntl(fd, F_GET_SEALS) >= 0;
  if (memory && (::fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    return fail(error_code::bad_data,
                made.name_ + ": shared memory that its owner may shorten; seal it (F_SEAL_SHRINK)");
  made.size_ = static_cast<std::size_t>(about.st_size);
  if (made.size_ == 0) return made; // mmap refuses empty files; no bytes need no mapping
  void* const address = ::mmap(nullptr, made.size_, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return system_failure("cannot map", made.name_);
  made.data_ = static_cast<const std::uint8_t*>(address);
  made.mapped_ = true;
  return made;
}

} // namespace dlrun::data
