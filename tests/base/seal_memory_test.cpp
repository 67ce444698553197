#include "base/seal_memory.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dlrun::base {
namespace {

constexpr std::size_t bytes = 4096;

/// Memory that nobody has mapped any more, and of which a pipe holds a page, as the kernel itself
/// may for a moment.
class held_memory : public testing::Test {
protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    holder_ = unique_fd(ends[0]);
    const unique_fd into(ends[1]);
    ASSERT_EQ(::ftruncate(memory_.get(), bytes), 0);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    *static_cast<char*>(mapped) = 1;
    const iovec page{mapped, bytes};
    ASSERT_EQ(::vmsplice(into.get(), &page, 1, 0), static_cast<ssize_t>(bytes));
    ASSERT_EQ(::munmap(mapped, bytes), 0);
  }

  unique_fd memory_{::memfd_create("held", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  unique_fd holder_;
};

TEST_F(held_memory, is_sealed_when_it_is_let_go) {
  const int refused = seal_memory(memory_.get(), F_SEAL_WRITE, [this] {
    holder_ = {};
    return true;
  });
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(::fcntl(memory_.get(), F_GET_SEALS), F_SEAL_WRITE);
}

TEST_F(held_memory, is_told_of_when_nobody_lets_it_go) {
  EXPECT_EQ(seal_memory(memory_.get(), F_SEAL_WRITE, [] { return false; }), EBUSY);
}

TEST(seal_memory, does_not_ask_again_what_can_never_be) {
  const unique_fd memory(::memfd_create("without seals", MFD_CLOEXEC));
  EXPECT_EQ(seal_memory(memory.get(), F_SEAL_WRITE, []() -> bool { throw std::logic_error("asked again"); }),
            EPERM);
}

} // namespace
} // namespace dlrun::base
