#include "base/reserve_bytes.hpp"

#include "base/unique_fd.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace dlrun::base {
namespace {

/// While this is above 0, a signal comes each time that a file is to get more space than so many
/// bytes at once, and every other time that it is to get less.
off_t signal_above_bytes = 0;
bool came_before = false;

bool does_signal_come(off_t bytes) {
  if (signal_above_bytes == 0) return false;
  came_before = bytes > signal_above_bytes || !came_before;
  return came_before;
}

std::int64_t reserved_bytes(int fd) {
  constexpr std::int64_t block_bytes = 512;
  struct stat about {};
  EXPECT_EQ(::fstat(fd, &about), 0);
  return about.st_blocks * block_bytes;
}

TEST(reserve_bytes, takes_all_of_it_whatever_signals_come) {
  constexpr std::uint64_t bytes = std::uint64_t{17} << 20;
  const unique_fd memory(::memfd_create("reserved", MFD_CLOEXEC));
  signal_above_bytes = off_t{4} << 20;
  const int refused = reserve_bytes(memory.get(), bytes);
  signal_above_bytes = 0;
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(reserved_bytes(memory.get()), static_cast<std::int64_t>(bytes));
}

TEST(reserve_bytes, takes_no_more_than_was_asked_for) {
  const unique_fd memory(::memfd_create("reserved", MFD_CLOEXEC));
  EXPECT_EQ(reserve_bytes(memory.get(), 5'000'000), 0);
  struct stat about {};
  ASSERT_EQ(::fstat(memory.get(), &about), 0);
  EXPECT_EQ(about.st_size, 5'000'000);
}

TEST(reserve_bytes, tells_why_there_is_none) {
  EXPECT_EQ(reserve_bytes(-1, 1), EBADF);
  const unique_fd sealed(::memfd_create("reserved", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_EQ(reserve_bytes(sealed.get(), 1), EPERM);
}

} // namespace
} // namespace dlrun::base

/// In place of the C library's, for all of this program: how Linux 6.1, of Debian 12, takes signals
/// on tmpfs. Later ones take only those that kill.
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (dlrun::base::does_signal_come(bytes)) return EINTR;
  return ::syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}
