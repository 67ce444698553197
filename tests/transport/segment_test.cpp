#include "transport/segment.hpp"

#include "transport/run_token.hpp"

#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dlrun::transport {
namespace {

base::unique_fd copy_of(int fd) { return base::unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

base::unique_fd memfd(std::size_t bytes, int seals) {
  base::unique_fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

error_code adopt_error(base::unique_fd fd, std::size_t bytes,
                       std::size_t bytes_max = segment_bytes_max_default) {
  const auto adopted = segment::adopt(std::move(fd), bytes, bytes_max);
  EXPECT_FALSE(adopted);
  return adopted ? error_code{} : adopted.error().code;
}

TEST(segment, a_peer_sees_what_the_owner_writes) {
  auto owner = segment::create("test", 10'000).value();
  const auto peer = segment::adopt(copy_of(owner.fd()), 10'000).value();
  owner.mutable_bytes()[9'999] = std::byte{42};
  EXPECT_EQ(peer.bytes()[9'999], std::byte{42});
  EXPECT_EQ(peer.size(), 10'000U);
  EXPECT_FALSE(peer.writable());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(peer.bytes().data()) % 64, 0U);
}

TEST(segment, begins_as_zeroes) {
  const auto owner = segment::create("test", 4'097).value();
  for (const auto byte : owner.bytes()) ASSERT_EQ(byte, std::byte{0});
}

TEST(segment, nobody_can_change_its_size) {
  const auto owner = segment::create("test", 8'192).value();
  EXPECT_NE(::ftruncate(owner.fd(), 4'096), 0);
  EXPECT_NE(::ftruncate(owner.fd(), 16'384), 0);
  EXPECT_NE(::fcntl(owner.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(segment, a_peer_cannot_get_a_writable_mapping) {
  const auto owner = segment::create("test", 4'096).value();
  EXPECT_EQ(::mmap(nullptr, 4'096, PROT_READ | PROT_WRITE, MAP_SHARED, owner.fd(), 0), MAP_FAILED);
  const char byte = 1;
  EXPECT_LT(::pwrite(owner.fd(), &byte, 1, 0), 0);
}

TEST(segment, lies_in_memory_that_somebody_else_holds_and_outlives_it_there) {
  const base::unique_fd held(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  {
    auto owner = segment::create_in(copy_of(held.get()), 8'192).value();
    owner.mutable_bytes()[8'191] = std::byte{7};
    EXPECT_NE(::ftruncate(held.get(), 4'096), 0);
    const char byte = 1;
    EXPECT_LT(::pwrite(held.get(), &byte, 1, 0), 0) << "who holds it cannot write it";
  }
  const auto later = segment::adopt(copy_of(held.get()), 8'192).value();
  EXPECT_EQ(later.bytes()[8'191], std::byte{7});
  EXPECT_EQ(segment::create_in(copy_of(held.get()), 8'192).error().code, error_code::bad_usage)
      << "it is used once";
}

TEST(segment, sizes_are_bounded) {
  EXPECT_EQ(segment::create("test", 0).error().code, error_code::limit_exceeded);
  EXPECT_EQ(segment::create("test", 101, 100).error().code, error_code::limit_exceeded);
  EXPECT_EQ(adopt_error(memfd(200, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 200, 100),
            error_code::limit_exceeded);
  EXPECT_EQ(adopt_error(memfd(0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0), error_code::limit_exceeded);
}

TEST(segment, a_descriptor_that_could_still_shrink_is_refused) {
  EXPECT_EQ(adopt_error(memfd(4'096, 0), 4'096), error_code::protocol);
  EXPECT_EQ(adopt_error(memfd(4'096, F_SEAL_GROW | F_SEAL_SEAL), 4'096), error_code::protocol);
  EXPECT_EQ(adopt_error(memfd(4'096, F_SEAL_SHRINK | F_SEAL_GROW), 4'096), error_code::protocol);
}

TEST(segment, a_descriptor_of_another_size_is_refused) {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(adopt_error(memfd(4'095, seals), 4'096), error_code::protocol);
  EXPECT_EQ(adopt_error(memfd(8'192, seals), 4'096), error_code::protocol);
}

TEST(segment, a_descriptor_that_is_no_memfd_is_refused) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const base::unique_fd other(pair[1]);
  EXPECT_EQ(adopt_error(base::unique_fd(pair[0]), 4'096), error_code::protocol);
  EXPECT_EQ(adopt_error(base::unique_fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 4'096),
            error_code::protocol);
  EXPECT_EQ(adopt_error(base::unique_fd(), 4'096), error_code::protocol);
}

TEST(segment, moves_leave_nothing_behind) {
  auto a = segment::create("test", 64).value();
  const auto* address = a.bytes().data();
  segment b = std::move(a);
  EXPECT_EQ(b.bytes().data(), address);
  segment c;
  EXPECT_FALSE(c);
  c = std::move(b);
  EXPECT_TRUE(c.writable());
  c = segment();
  EXPECT_EQ(c.size(), 0U);
}

TEST(run_token, survives_hexadecimal) {
  const auto token = run_token::random().value();
  EXPECT_EQ(run_token::from_hex(token.to_hex()).value(), token);
  EXPECT_FALSE(run_token::random().value() == token);
}

TEST(run_token, survives_a_message_and_has_no_other_length) {
  const auto token = run_token::random().value();
  EXPECT_EQ(run_token::from_bytes(token.to_bytes()), token);
  EXPECT_EQ(run_token::from_bytes(token.to_bytes() + "x"), std::nullopt);
  EXPECT_EQ(run_token::from_bytes(""), std::nullopt);
}

TEST(run_token, refuses_what_is_not_32_lower_case_digits) {
  const std::string good(32, 'a');
  EXPECT_TRUE(run_token::from_hex(good));
  for (const auto& bad :
       {std::string(), good.substr(1), good + "a", "g" + good.substr(1), "A" + good.substr(1)})
    EXPECT_EQ(run_token::from_hex(bad).error().code, error_code::bad_usage) << bad;
}

} // namespace
} // namespace dlrun::transport
