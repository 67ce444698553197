#include "data/split.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

TEST(split, every_record_is_in_exactly_one_part_in_order) {
  for (std::uint64_t records = 2; records <= 60; ++records)
    for (std::uint64_t held_out = 1; held_out < records; ++held_out) {
      const split division(records, records, held_out);
      std::vector<int> seen(records);
      for (std::uint64_t i = 0; i < division.validation_records(); ++i) {
        EXPECT_TRUE(i == 0 || division.validation(i - 1) < division.validation(i));
        EXPECT_TRUE(division.is_held_out(division.validation(i)));
        ++seen[division.validation(i)];
      }
      for (std::uint64_t i = 0; i < division.training_records(); ++i) {
        EXPECT_TRUE(i == 0 || division.training(i - 1) < division.training(i));
        EXPECT_FALSE(division.is_held_out(division.training(i)));
        ++seen[division.training(i)];
      }
      EXPECT_EQ(seen, std::vector<int>(records, 1)) << held_out << " of " << records;
    }
}

TEST(split, both_parts_are_spread_evenly) {
  const split division(1, 1'000'000, 100'000);
  std::uint64_t early = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) early += division.validation(i) % 10 < 5 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(early), 50'000, 800)
      << "five sigma: the place within a piece is drawn evenly";
  EXPECT_LT(division.validation(50'000), 500'010U);
}

TEST(split, the_seed_decides) {
  const auto drawn = [](std::uint64_t seed) {
    const split division(seed, 1000, 100);
    std::vector<std::uint64_t> all(100);
    for (std::uint64_t i = 0; i < 100; ++i) all[i] = division.validation(i);
    return all;
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

// What is held out is part of what makes a run repeatable: it must not change between versions.
TEST(split, keeps_the_draw_of_the_first_release) {
  const split division(1, 20, 4);
  EXPECT_EQ((std::vector<std::uint64_t>{division.validation(0), division.validation(1),
                                        division.validation(2), division.validation(3)}),
            (std::vector<std::uint64_t>{4, 5, 10, 17}));
}

TEST(split, the_part_is_rounded_but_leaves_something_on_both_sides) {
  EXPECT_EQ(*split::held_out_records(0.1, 203), 20U);
  EXPECT_EQ(*split::held_out_records(0.5, 3), 2U);
  EXPECT_EQ(*split::held_out_records(0.001, 10), 1U);
  EXPECT_EQ(*split::held_out_records(0.9, 3), 2U);
  const auto single = split::held_out_records(0.5, 1);
  ASSERT_FALSE(single);
  EXPECT_THAT(single.error().message, testing::HasSubstr("data.validation.split"));
}

} // namespace
} // namespace dlrun::data
