#include "transport/segment.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <dlrun/check.hpp>
#include <dlrun/detail/parallel_for.hpp>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <thread>

namespace dlrun::transport {

namespace {

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

result<void> check_bytes(std::size_t bytes, std::size_t bytes_max) {
  if (bytes > 0 && bytes <= bytes_max) return {};
  return fail(error_code::limit_exceeded,
              fmt::format("a shared memory segment of {} bytes was asked for; 1 to {} are allowed", bytes,
                          bytes_max));
}

/// Pages are got in pieces, since for the whole of one the kernel lets no other thread of the
/// process map anything, not even for a malloc; and by several threads, as most of it is to fill
/// them with zeroes.
constexpr std::size_t populated_piece = std::size_t{16} << 20;
constexpr std::size_t populating_threads_max = 4;
/// Linux 5.14; the C library's headers may be older.
constexpr int populate_read = 22, populate_write = 23;

/// @returns the errno, 0 for none.
int populate_piece(std::byte* begin, std::size_t bytes, bool writable) {
  while (::madvise(begin, bytes, writable ? populate_write : populate_read) != 0) {
    if (errno == EAGAIN || errno == EINTR) continue;
    return errno == EINVAL ? 0 : errno; // an older kernel gets them when they are touched
  }
  return 0;
}

result<void> populate(std::byte* address, std::size_t bytes, bool writable) {
  const auto pieces = (bytes + populated_piece - 1) / populated_piece;
  const auto threads =
      std::min<std::size_t>({pieces, std::thread::hardware_concurrency(), populating_threads_max});
  std::atomic<int> refused = 0;
  dlrun::detail::parallel_for(pieces, static_cast<unsigned>(threads), [&] {
    return [&](std::size_t piece) {
      const auto begin = piece * populated_piece;
      if (const int why = populate_piece(address + begin, std::min(populated_piece, bytes - begin), writable))
        refused = why;
    };
  });
  if (refused == 0) return {};
  errno = refused;
  return base::fail_errno(fmt::format("cannot get {} bytes of shared memory", bytes));
}

result<std::byte*> map(int fd, std::size_t bytes, int protection) {
  void* const mapped = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED)
    return base::fail_errno(fmt::format("cannot map {} bytes of shared memory", bytes));
  auto* const address = static_cast<std::byte*>(mapped);
  if (auto there = populate(address, bytes, (protection & PROT_WRITE) != 0); !there) {
    ::munmap(mapped, bytes);
    return tl::unexpected(there.error());
  }
  return address;
}

/// A peer's descriptor must be unable to change its size; a hugetlb file can fault for lack of huge
/// pages.
result<void> check_descriptor(int fd, std::size_t expected_bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return fail(error_code::protocol, "a peer offered a descriptor that is not a memfd");
  if ((seals & size_seals) != size_seals)
    return fail(error_code::protocol,
                fmt::format("a peer offered a memfd whose size is not sealed (seals {:#x})", seals));
  struct statfs file_system {};
  struct stat file {};
  if (::fstatfs(fd, &file_system) != 0 || ::fstat(fd, &file) != 0)
    return base::fail_errno("cannot stat a peer's memfd");
  if (file_system.f_type == HUGETLBFS_MAGIC)
    return fail(error_code::protocol,
                "a peer offered a memfd of huge pages, which can fault for lack of them");
  if (file.st_size < 0 || static_cast<std::size_t>(file.st_size) != expected_bytes)
    return fail(error_code::protocol,
                fmt::format("a peer offered a memfd of {} bytes where {} were announced", file.st_size,
                            expected_bytes));
  return {};
}

} // namespace

segment::segment(base::unique_fd fd, std::byte* address, std::size_t size, bool writable)
    : fd_(std::move(fd))
    , address_(address)
    , size_(size)
    , writable_(writable) {}

segment::segment(segment&& other) noexcept
    : fd_(std::move(other.fd_))
    , address_(std::exchange(other.address_, nullptr))
    , size_(std::exchange(other.size_, 0))
    , writable_(std::exchange(other.writable_, false))
    , owner_(std::move(other.owner_)) {}

segment& segment::operator=(segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(writable_, other.writable_);
  std::swap(owner_, other.owner_);
  return *this;
}

segment::~segment() {
  if (address_ != nullptr && !owner_) ::munmap(address_, size_);
}

result<void> check_segment_floats(std::string_view kind, std::size_t floats, std::size_t floats_max) {
  if (floats > 0 && floats <= floats_max) return {};
  return fail(
      error_code::limit_exceeded,
      fmt::format("a {} segment of {} floats was asked for; 1 to {} are allowed", kind, floats, floats_max));
}

result<segment> segment::create(std::string_view name, std::size_t bytes, std::size_t bytes_max) {
  const auto label = fmt::format("dlrun:{}", name.substr(0, 200));
  base::unique_fd fd(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return base::fail_errno(fmt::format("cannot create the shared memory '{}'", label));
  return create_in(std::move(fd), bytes, bytes_max);
}

result<segment> segment::create_in(base::unique_fd fd, std::size_t bytes, std::size_t bytes_max) {
  if (auto ok = check_bytes(bytes, bytes_max); !ok) return tl::unexpected(ok.error());
  struct stat file {};
  if (::fcntl(fd.get(), F_GET_SEALS) != 0 || ::fstat(fd.get(), &file) != 0 || file.st_size != 0)
    return fail(error_code::bad_usage,
                fmt::format("descriptor {} is no empty memfd that can be sealed", fd.get()));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return base::fail_errno(fmt::format("cannot size shared memory to {} bytes", bytes));
  const auto address = map(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!address) return tl::unexpected(address.error());
  segment made(std::move(fd), *address, bytes, true);
  // After our own writable mapping exists, nobody else gets one.
  if (::fcntl(made.fd(), F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE) != 0)
    return base::fail_errno("cannot seal shared memory");
  return made;
}

result<segment> segment::adopt(base::unique_fd fd, std::size_t expected_bytes, std::size_t bytes_max) {
  if (auto ok = check_bytes(expected_bytes, bytes_max); !ok) return tl::unexpected(ok.error());
  if (auto ok = check_descriptor(fd.get(), expected_bytes); !ok) return tl::unexpected(ok.error());
  const auto address = map(fd.get(), expected_bytes, PROT_READ);
  if (!address) return tl::unexpected(address.error());
  return segment({}, *address, expected_bytes, false);
}

segment segment::of_copy(std::span<const std::byte> memory, std::shared_ptr<const void> owner) {
  DLRUN_CHECK(owner && !memory.empty(), "a copy of {} bytes has memory, and that has an owner",
              memory.size());
  segment made({}, const_cast<std::byte*>(memory.data()), memory.size(), false);
  made.owner_ = std::move(owner);
  return made;
}

/// An old size of 0 makes a second mapping of the same pages (mremap(2)): no descriptor has to be
/// kept for it.
result<void> segment::map_again(std::size_t offset, std::size_t bytes, std::byte* address) const {
  DLRUN_CHECK(!owner_ && offset + bytes <= size_, "bytes [{}, {}) of a segment of {} are not mapped", offset,
              offset + bytes, size_);
  void* const made = ::mremap(address_ + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address);
  if (made == MAP_FAILED)
    return base::fail_errno(fmt::format("cannot map {} bytes of shared memory again", bytes));
  return populate(address, bytes, false);
}

result<base::unique_fd> segment::duplicate() const {
  base::unique_fd copy(::fcntl(fd(), F_DUPFD_CLOEXEC, 3));
  if (!copy)
    return base::fail_errno(
        "cannot duplicate a segment's descriptor (raise the limit of open files: ulimit -n)");
  return copy;
}

std::span<std::byte> segment::mutable_bytes() {
  DLRUN_CHECK(writable_, "only the process that created a segment writes it");
  return {address_, size_};
}

} // namespace dlrun::transport
