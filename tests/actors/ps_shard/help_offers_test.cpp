#include "actors/ps_shard/help_offers.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;

const std::vector<slot_id> missing{{2}, {3}, {6}};

TEST(help_offers, each_missing_slot_goes_to_one_worker_first) {
  help_offers offers;
  EXPECT_EQ(offers.next({7}, 1, missing), make_slot_range(6, 7));
  EXPECT_EQ(offers.next({7}, 1, missing), make_slot_range(3, 4));
  EXPECT_EQ(offers.next({7}, 1, missing), make_slot_range(2, 3));
  EXPECT_TRUE(offers.next({7}, 1, missing).empty());
}

TEST(help_offers, who_asks_again_may_take_what_another_is_late_with) {
  help_offers offers;
  EXPECT_EQ(offers.next({7}, 1, {{2}}), make_slot_range(2, 3));
  EXPECT_TRUE(offers.next({7}, 1, {{2}}).empty());
  EXPECT_EQ(offers.next({7}, 2, {{2}}), make_slot_range(2, 3));
  EXPECT_TRUE(offers.next({7}, 2, {{2}}).empty());
}

TEST(help_offers, another_step_begins_anew) {
  help_offers offers;
  offers.next({7}, 1, {{2}});
  EXPECT_EQ(offers.next({8}, 1, {{2}}), make_slot_range(2, 3));
}

TEST(help_offers, of_a_step_that_lacks_nothing_there_is_no_offer) {
  help_offers offers;
  EXPECT_TRUE(offers.next({7}, 3, {}).empty());
}

} // namespace
} // namespace dlrun::ps_shard
