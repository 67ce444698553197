#include "data/equal_records.hpp"

#include "data/idx_reader.hpp"
#include "data/memory_budget.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::data {
namespace {

/// Records of two bytes, with a class each.
decoded_data decoded(const test::bytes& values, const test::bytes& classes) {
  const test::temporary_folder folder;
  memory_budget memory;
  const auto count = static_cast<std::uint32_t>(classes.size());
  return decode_idx({.records = folder.write("records", test::idx_bytes({count, 2}, values)),
                     .labels = folder.write("classes", test::idx_bytes({count}, classes)),
                     .options = {},
                     .targets = target_kind::classes},
                    memory)
      .value();
}

TEST(equal_records, are_those_with_the_same_inputs_and_the_same_target) {
  const auto others = all_records(decoded({1, 2, 3, 4, 5, 6}, {0, 1, 2}));
  const auto count = [&](const test::bytes& values, const test::bytes& classes) {
    return count_equal(all_records(decoded(values, classes)), others).value();
  };
  EXPECT_EQ(count({5, 6, 1, 2}, {2, 0}), 2U) << "in whatever order";
  EXPECT_EQ(count({1, 2, 9, 9}, {0, 0}), 1U);
  EXPECT_EQ(count({1, 2, 3, 4}, {1, 0}), 0U) << "other targets";
  EXPECT_EQ(count({2, 1}, {0}), 0U);
}

TEST(equal_records, count_each_time_they_stand_there) {
  const auto once = all_records(decoded({1, 2}, {0}));
  const auto thrice = all_records(decoded({1, 2, 1, 2, 1, 2}, {0, 0, 0}));
  EXPECT_EQ(count_equal(thrice, once).value(), 3U);
  EXPECT_EQ(count_equal(once, thrice).value(), 1U);
}

TEST(equal_records, looks_at_those_that_were_chosen_alone) {
  auto records = all_records(decoded({1, 2, 3, 4}, {0, 1}));
  auto others = records;
  records.places = {0};
  others.places = {1};
  EXPECT_EQ(count_equal(records, others).value(), 0U);
  others.places = {0};
  EXPECT_EQ(count_equal(records, others).value(), 1U);
}

TEST(equal_records, are_found_among_more_than_are_read_at_once) {
  constexpr std::size_t count = 1000;
  test::bytes values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::uint8_t>(i));
    values.push_back(static_cast<std::uint8_t>(i / 256));
  }
  const auto all = all_records(decoded(values, test::bytes(count)));
  EXPECT_EQ(count_equal(all, all).value(), count);
}

} // namespace
} // namespace dlrun::data
