#include "base/utf8.hpp"

#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

TEST(utf8, accepts_every_length_of_sequence) {
  for (const char* text : {"", "ascii", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_FALSE(first_invalid_utf8(text)) << text;
}

TEST(utf8, finds_the_first_wrong_byte) {
  for (const char* text : {"ab\x80", "ab\xc0\x80", "ab\xc1\xbf", "ab\xe0\x9f\xbf", "ab\xed\xa0\x80",
                           "ab\xf0\x8f\xbf\xbf", "ab\xf4\x90\x80\x80", "ab\xf5\x80\x80\x80", "ab\xff",
                           "ab\xc2", "ab\xe2\x82", "ab\xf0\x9f\x9a", "ab\xc2g"})
    EXPECT_EQ(first_invalid_utf8(text), 2U);
}

TEST(printable, escapes_what_a_terminal_would_obey_and_cuts) {
  EXPECT_EQ(printable("a\nb\x1b\x7f\xff"), "a\\nb\\x1b\\x7f\\xff");
  EXPECT_EQ(printable("gr\xc3\xbcn"), "gr\xc3\xbcn");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m, 5\xc2\xa0m"),
            "\\xc2\\x9b31m, 5\xc2\xa0m"); // U+009B is CSI
  EXPECT_EQ(printable("0123456789", 4), "0123...");
}

} // namespace
} // namespace dlrun::base
