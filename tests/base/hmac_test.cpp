#include "base/hmac.hpp"

#include "base/hex.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

// RFC 4231, test case 1; HMAC fills the key of 20 bytes up with zeros, as it stands here.
TEST(hmac, makes_the_codes_of_the_standard) {
  hmac_key key{};
  std::fill_n(key.begin(), 20, std::byte{0x0b});
  constexpr std::string_view said = "Hi There";
  EXPECT_EQ(to_hex(hmac_sha256(key, std::as_bytes(std::span{said}))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST(hmac, keys_of_two_purposes_differ_and_two_random_ones_too) {
  const auto key = random_key().value();
  EXPECT_NE(derived_key(key, "to beta"), derived_key(key, "to gamma"));
  EXPECT_NE(derived_key(key, "to beta"), key);
  EXPECT_EQ(derived_key(key, "to beta"), derived_key(key, "to beta"));
  EXPECT_NE(random_key().value(), key);
}

TEST(hmac, secrets_are_the_same_when_every_byte_is) {
  const auto key = random_key().value();
  for (std::size_t i = 0; i < key.size(); ++i) {
    auto other = key;
    EXPECT_TRUE(is_same_secret(key, other));
    other[i] ^= std::byte{1};
    EXPECT_FALSE(is_same_secret(key, other)) << i;
  }
  EXPECT_FALSE(is_same_secret(key, std::span{key}.first(31)));
}

} // namespace
} // namespace dlrun::base
