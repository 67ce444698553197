#include "cli/whole_number.hpp"

#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

/// What is said of the value; "" where it is taken.
std::string problem_of(std::string value, std::uint64_t min = 0, std::uint64_t max = any_number) {
  return whole_number(min, max)(value);
}

TEST(whole_number, is_decimal_digits_alone) {
  for (const char* text : {"0", "1", "12", "18446744073709551615"}) EXPECT_EQ(problem_of(text), "") << text;
  for (const char* text : {"", "010", "00", "+5", "-1", "0x10", "1e3", "1.0", "1_000", " 5", "5 ", "five"})
    EXPECT_EQ(problem_of(text), fmt::format("expected a whole number in decimal digits, without leading "
                                            "zeros, found '{}'",
                                            text));
}

TEST(whole_number, that_is_out_of_range_names_the_range_and_the_value) {
  EXPECT_EQ(problem_of("1", 1, 4096), "");
  EXPECT_EQ(problem_of("4096", 1, 4096), "");
  EXPECT_EQ(problem_of("0", 1, 4096), "expected a whole number from 1 to 4096, found '0'");
  EXPECT_EQ(problem_of("4097", 1, 4096), "expected a whole number from 1 to 4096, found '4097'");
  EXPECT_EQ(problem_of("0", 1), "expected a whole number of at least 1, found '0'");
  EXPECT_EQ(problem_of("01", 1, 9),
            "expected a whole number from 1 to 9 in decimal digits, without leading zeros, found '01'");
}

TEST(whole_number, that_no_type_holds_is_too_large) {
  EXPECT_EQ(problem_of("18446744073709551616"),
            "expected a whole number, found '18446744073709551616', which is too large");
  EXPECT_EQ(problem_of("18446744073709551616", 1, 9),
            "expected a whole number from 1 to 9, found '18446744073709551616'");
}

} // namespace
} // namespace dlrun::cli
