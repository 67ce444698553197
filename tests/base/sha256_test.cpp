#include "base/sha256.hpp"

#include "base/atomic_file.hpp"
#include "tests/data/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace dlrun::base {
namespace {

// FIPS 180-2, appendix B.
constexpr auto of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr auto of_a_million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(sha256, has_the_digests_of_the_standard) {
  EXPECT_EQ(sha256_hex("abc"), of_abc);
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), of_a_million);
}

TEST(sha256, a_file_has_the_digest_of_its_bytes) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "a";
  const std::string half(1'500'000, 'a');
  const std::vector<std::string_view> parts{half, "", half};
  ASSERT_TRUE(write_file_atomically(file, parts));
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(sha256_of_file(fd, "a").value(), sha256_hex(half + half));
  EXPECT_EQ(sha256_of_file(fd, "a").value(), sha256_hex(half + half)) << "the position is where it was";
  ::close(fd);
  EXPECT_EQ(sha256_of_file(-1, "gone").error().code, error_code::system);
}

TEST(sha256, knows_a_digest_when_it_sees_one) {
  EXPECT_TRUE(is_sha256_hex(of_abc));
  EXPECT_FALSE(is_sha256_hex(std::string(of_abc) + "0"));
  EXPECT_FALSE(is_sha256_hex(std::string(64, 'A')));
  EXPECT_FALSE(is_sha256_hex(""));
}

} // namespace
} // namespace dlrun::base
