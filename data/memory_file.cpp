#include "data/memory_file.hpp"

#include "base/reserve_bytes.hpp"
#include "base/seal_memory.hpp"
#include "data/file_errors.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace dlrun::data {

result<memory_file> memory_file::create(std::uint64_t bytes, std::string name) {
  memory_file made;
  made.name_ = std::move(name);
  made.fd_ = ::memfd_create("dlrun-data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made.fd_ < 0) return system_failure("cannot create memory for", made.name_);
  // Reserved now: memory that is missing must be an error here, not a signal at some later write.
  const int refused = base::reserve_bytes(made.fd_, bytes);
  void* const address = refused == 0 ? ::mmap(nullptr, static_cast<std::size_t>(bytes),
                                              PROT_READ | PROT_WRITE, MAP_SHARED, made.fd_, 0)
                                     : MAP_FAILED;
  if (refused != 0) errno = refused;
  if (address == MAP_FAILED)
    return system_failure(fmt::format("cannot take {} bytes of memory for", bytes), made.name_);
  made.data_ = static_cast<std::uint8_t*>(address);
  made.size_ = static_cast<std::size_t>(bytes);
  return made;
}

memory_file::memory_file(memory_file&& other) noexcept
    : data_(std::exchange(other.data_, nullptr))
    , size_(std::exchange(other.size_, 0))
    , fd_(std::exchange(other.fd_, -1))
    , name_(std::move(other.name_)) {}

memory_file::~memory_file() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (fd_ >= 0) ::close(fd_);
}

result<blob> memory_file::seal() && {
  ::munmap(data_, size_); // F_SEAL_WRITE needs that no writable mapping is left
  data_ = nullptr;
  constexpr int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (const int refused = base::seal_memory(fd_, all); refused != 0) {
    errno = refused;
    return system_failure("cannot seal the memory for", name_);
  }
  return blob::from_fd(std::exchange(fd_, -1), name_);
}

} // namespace dlrun::data
