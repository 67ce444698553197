#include "actors/protocol/parking.hpp"

#include <gmock/gmock.h>

namespace dlrun::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const parked_slots_list some{{{3}, {0}, 2}, {{3}, {1}, 0}, {{3}, {1}, 5}, {{3}, {1}}, {{4}, {0}, 1}};

TEST(parking, a_slot_is_left_out_as_a_whole_or_record_by_record) {
  EXPECT_TRUE(is_parked(some, {3}, {1}));
  EXPECT_FALSE(is_parked(some, {3}, {0}));
  EXPECT_THAT(parked_records(some, {3}, {1}), ElementsAre(0, 5));
  EXPECT_THAT(parked_records(some, {3}, {0}), ElementsAre(2));
  EXPECT_THAT(parked_records(some, {3}, {2}), IsEmpty());
}

TEST(parking, what_is_left_of_a_slot_is_what_its_gradient_is_summed_over) {
  EXPECT_EQ(records_left(some, {3}, {1}, 8), 0U);
  EXPECT_EQ(records_left(some, {3}, {0}, 8), 7U);
  EXPECT_EQ(records_left(some, {4}, {0}, 1), 0U);
  EXPECT_EQ(records_left(some, {9}, {0}, 8), 8U);
}

TEST(parking, a_slot_of_which_too_little_is_left_goes_as_a_whole) {
  parked_slots_list all;
  EXPECT_THAT(park(all, {{1}, {0}, 3}, 4, 2), ElementsAre(parked_slot{{1}, {0}, 3}));
  EXPECT_THAT(park(all, {{1}, {0}, 3}, 4, 2), IsEmpty()) << "told again";
  EXPECT_THAT(park(all, {{1}, {0}, 1}, 4, 2), ElementsAre(parked_slot{{1}, {0}, 1}));
  EXPECT_THAT(park(all, {{1}, {0}, 0}, 4, 2),
              ElementsAre(parked_slot{{1}, {0}, 0}, parked_slot{{1}, {0}, all_records}));
  EXPECT_THAT(park(all, {{1}, {0}, 2}, 4, 2), IsEmpty()) << "it is gone already";
  EXPECT_THAT(park(all, {{2}, {0}, 0}, 1, 1), ElementsAre(parked_slot{{2}, {0}, 0}, parked_slot{{2}, {0}}));
}

TEST(parking, is_written_as_skip_takes_it) {
  EXPECT_EQ(to_string(parked_slot{{12}, {3}}), "12:3");
  EXPECT_EQ(to_string(parked_slot{{12}, {3}, 7}), "12:3:7");
}

} // namespace
} // namespace dlrun::protocol
