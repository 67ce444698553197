#include "security/sealed_text.hpp"

#include <gtest/gtest.h>

namespace dlrun::security {
namespace {

constexpr auto purpose = "secrets of run 1";

class sealed_texts : public ::testing::Test {
protected:
  base::hmac_key key_ = base::random_key().value();
  secret_text text_{std::string{"a\0b", 3}};
  std::string sealed_ = seal(key_, purpose, text_).value();
};

TEST_F(sealed_texts, are_opened_with_the_key_that_sealed_them) {
  EXPECT_EQ(unseal(key_, purpose, sealed_)->reveal(), text_.reveal());
  const auto nothing = seal(key_, purpose, secret_text{}).value();
  EXPECT_EQ(unseal(key_, purpose, nothing)->reveal(), "");
}

TEST_F(sealed_texts, are_not_opened_with_another_key_or_for_another_purpose) {
  EXPECT_EQ(unseal(base::random_key().value(), purpose, sealed_).error().code, error_code::bad_usage);
  EXPECT_EQ(unseal(key_, "secrets of run 2", sealed_).error().code, error_code::bad_usage);
}

TEST_F(sealed_texts, are_not_opened_when_a_bit_is_flipped_or_a_byte_is_missing) {
  for (std::size_t at = 0; at < sealed_.size(); ++at) {
    auto flipped = sealed_;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(unseal(key_, purpose, flipped)) << at;
    EXPECT_FALSE(unseal(key_, purpose, sealed_.substr(0, at))) << at;
  }
  EXPECT_FALSE(unseal(key_, purpose, sealed_ + "x"));
}

TEST_F(sealed_texts, tell_nothing_of_what_is_in_them_not_even_that_it_is_the_same) {
  EXPECT_NE(seal(key_, purpose, text_).value(), sealed_);
  const secret_text words{"the authority's key"};
  EXPECT_EQ(seal(key_, purpose, words)->find("authority"), std::string::npos);
}

} // namespace
} // namespace dlrun::security
