#include "base/base64.hpp"

#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

/// RFC 4648, section 10.
TEST(base64, is_what_the_rfc_says) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(base64, comes_back_as_it_was_whatever_the_bytes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(base64, what_it_does_not_write_it_does_not_read) {
  for (const auto* text :
       {"Zg", "Zg=", "Zh==", "Z===", "Zm9v\n", " Zm9v", "Zm 9v", "Zm9*", "====", "Zg==Zg=="})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

} // namespace
} // namespace dlrun::base
