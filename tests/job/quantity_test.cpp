#include "job/quantity.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

TEST(duration, is_a_number_and_a_unit) {
  EXPECT_DOUBLE_EQ(parse_duration("500ms").value(), 0.5);
  EXPECT_DOUBLE_EQ(parse_duration("1.5s").value(), 1.5);
  EXPECT_DOUBLE_EQ(parse_duration("2 min").value(), 120);
  EXPECT_DOUBLE_EQ(parse_duration("1e3us").value(), 0.001);
}

TEST(duration, without_a_unit_or_with_another_is_refused) {
  for (const char* text :
       {"", "s", "5", "5 years", "-1s", "nans", "infs", "1s2", "1 S", "0x10s", "010s", "00.5s", "+1s"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(size, is_a_number_with_or_without_a_unit) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("10GB"), 10'000'000'000u);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536u);
  EXPECT_EQ(parse_bytes("512 MiB"), 512u << 20);
}

TEST(size, that_cannot_be_or_is_too_large_is_refused) {
  for (const char* text : {"", "GB", "-1", "1 apple", "1e30GB", "nan", "10gb", "010GB", "00", "+1GB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(interval, is_a_number_of_epochs_or_steps) {
  EXPECT_EQ(parse_interval("1 epoch"), (interval{1, true}));
  EXPECT_EQ(parse_interval("12 epochs"), (interval{12, true}));
  EXPECT_EQ(parse_interval("500 steps"), (interval{500, false}));
  EXPECT_EQ(parse_interval("1step"), (interval{1, false}));
}

TEST(interval, that_is_none_is_refused) {
  for (const char* text : {"", "off", "epoch", "5", "0 steps", "-1 epoch", "1.5 epochs", "1 day", "1 steps ",
                           "9999999999999 steps", "99999999999999999999 steps", "010 steps", "+1 epoch"})
    EXPECT_FALSE(parse_interval(text)) << text;
}

} // namespace
} // namespace dlrun::job
