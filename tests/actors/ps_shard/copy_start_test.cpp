// What a start of a PS shard waits for before a word of it goes out.
#include "actors/ps_shard/copy_start.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr incarnation first_keeper{7}, second_keeper{9};

/// It has loaded version 3, and has snapshots of 1 and 2.
struct copy_start_test : testing::Test {
  copy_start_test() {
    chain.restart(protocol::first_history(), {3});
    mine.restorable = {{{0}, {3}}};
    mine.logged = {{{0}, {3}}};
    mine.snapshots = {{1}, {2}};
    loaded_standing restored;
    restored.version = {3};
    restored.restorable = mine.restorable;
    restored.snapshots = mine.snapshots;
    start.begin(restored);
  }
  static protocol::keeper_places places(bool first_counts, bool second_counts = false) {
    return {.is_known = true, .all = {{first_keeper, {}, first_counts}, {second_keeper, {}, second_counts}}};
  }
  void begin(bool first_counts, bool second_counts) {
    for (const auto copy : start.hear(places(first_counts, second_counts)))
      chain.begin_with(copy, copy == 0 ? first_keeper : second_keeper);
  }
  bool settles() { return start.settle(chain, mine).has_value(); }
  void copy_holds(std::size_t copy, std::uint64_t end, std::uint64_t floor = 0) {
    protocol::copy_standing said;
    said.incarnation = copy == 0 ? first_keeper : second_keeper;
    said.end = {end};
    said.floor = {floor};
    said.restorable = {{{0}, {end}}};
    if (floor > 0) said.restorable = {{{0}, {0}}, {{floor}, {end}}};
    for (const auto one : mine.snapshots)
      if (one.value >= floor) said.snapshots.push_back(one);
    chain.on_standing(copy, said, mine, protocol::time_point{});
  }

  copy_chain chain{2, protocol::durability::every_step};
  own_store mine;
  copy_start start;
};

TEST_F(copy_start_test, waits_until_the_agent_says_what_it_knows_of_the_keepers) {
  EXPECT_FALSE(settles());
  EXPECT_THAT(start.hear({}), IsEmpty()) << "it is not the start in hand";
  EXPECT_FALSE(settles());
  EXPECT_THAT(start.hear(places(false)), IsEmpty());
  EXPECT_FALSE(start.is_settled());
  EXPECT_TRUE(settles());
  EXPECT_TRUE(start.is_settled());
  EXPECT_FALSE(settles()) << "it has begun";
}

TEST_F(copy_start_test, waits_until_each_copy_that_an_earlier_start_counted_has_all_that_it_begins_with) {
  begin(true, true);
  EXPECT_FALSE(settles());
  copy_holds(1, 3);
  EXPECT_FALSE(settles());
  EXPECT_TRUE(start.waits_for(chain.of(0), mine));
  EXPECT_FALSE(start.waits_for(chain.of(1), mine));
  copy_holds(0, 3);
  EXPECT_TRUE(settles());
  EXPECT_FALSE(start.waits_for(chain.of(0), mine));
}

TEST_F(copy_start_test, waits_for_no_copy_that_did_not_count) {
  begin(false, true);
  copy_holds(1, 3);
  EXPECT_TRUE(settles());
}

TEST_F(copy_start_test, waits_no_longer_for_a_keeper_that_is_over) {
  begin(true, false);
  chain.on_keeper(0, {8});
  EXPECT_TRUE(settles());
}

TEST_F(copy_start_test, later_words_of_the_agent_are_about_its_own_start) {
  EXPECT_THAT(start.hear(places(false)), IsEmpty());
  EXPECT_THAT(start.hear(places(true)), IsEmpty()) << "it has said so itself";
}

/// R24: an earlier start told it of the floor, which this store has not heard of.
TEST_F(copy_start_test, begins_with_what_all_copies_have_where_one_has_dropped_what_is_below_a_floor) {
  begin(true, true);
  copy_holds(0, 3);
  copy_holds(1, 3, 2);
  const auto settled = start.settle(chain, mine);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->restorable, (protocol::version_set{{{0}, {0}}, {{2}, {3}}}));
  EXPECT_THAT(settled->snapshots, ElementsAre(version_id{2}));
}

} // namespace
} // namespace dlrun::ps_shard
