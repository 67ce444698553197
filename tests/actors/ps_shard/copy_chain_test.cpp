// What is committed where a PS shard's store has several copies.
#include "actors/ps_shard/copy_chain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr incarnation keepers[] = {{7}, {9}};

/// Of a store that begins with version 0.
struct copy_chain_test : testing::Test {
  static own_store store_up_to(std::uint64_t end, std::vector<version_id> snapshots = {}) {
    return {protocol::first_history(), {{{0}, {end}}}, {{{0}, {end}}}, std::move(snapshots), {}};
  }
  static protocol::copy_standing standing_at(std::size_t copy, std::uint64_t end,
                                             std::vector<version_id> snapshots = {}) {
    protocol::copy_standing said{.incarnation = keepers[copy], .end = {end}, .restorable = {{{0}, {end}}}};
    said.snapshots = std::move(snapshots);
    return said;
  }
  released_versions hear(std::size_t copy, std::uint64_t end, const own_store& mine) {
    return chain.on_standing(copy, standing_at(copy, end), mine, now);
  }
  /// Both hold all up to version 5.
  void count_both() {
    chain.on_logged({5});
    for (std::size_t copy = 0; copy < chain.size(); ++copy) hear(copy, 5, store_up_to(5));
    ASSERT_EQ(chain.of(0).counted(), keepers[0]);
    ASSERT_EQ(chain.of(1).counted(), keepers[1]);
  }

  copy_chain chain{2, protocol::durability::every_step};
  protocol::time_point now{std::chrono::hours(1)};
};

TEST_F(copy_chain_test, without_copies_all_is_committed_at_once) {
  copy_chain alone{0, protocol::durability::every_step};
  EXPECT_EQ(alone.on_logged({3}).committed, version_id{3});
  EXPECT_THAT(alone.on_snapshot({0}, {3}).snapshots, ElementsAre(version_id{3}));
  alone.restart({{{0}, {0}}, {{1}, {2}}}, {2});
  EXPECT_THAT(alone.on_snapshot({0}, {3}).snapshots, IsEmpty()) << "of a timeline that was left";
}

TEST_F(copy_chain_test, what_is_committed_is_what_the_copy_has_that_has_least) {
  count_both();
  EXPECT_EQ(chain.on_logged({7}).committed, std::nullopt);
  EXPECT_EQ(hear(0, 7, store_up_to(7)).committed, std::nullopt);
  EXPECT_EQ(hear(1, 6, store_up_to(7)).committed, version_id{6});
  EXPECT_EQ(hear(1, 7, store_up_to(7)).committed, version_id{7});
}

TEST_F(copy_chain_test, one_that_is_filled_delays_nobody_and_takes_nothing_from_the_other) {
  chain.on_logged({5});
  hear(0, 5, store_up_to(5));
  EXPECT_EQ(chain.on_logged({40}).committed, std::nullopt);
  EXPECT_EQ(hear(0, 40, store_up_to(40)).committed, version_id{40});
  EXPECT_EQ(hear(1, 2, store_up_to(40)).committed, std::nullopt);
  EXPECT_EQ(chain.of(1).counted(), incarnation{});
  EXPECT_EQ(chain.on_logged({41}).committed, std::nullopt);
  EXPECT_EQ(hear(0, 41, store_up_to(41)).committed, version_id{41});
}

TEST_F(copy_chain_test, when_one_keeper_is_over_the_other_is_waited_for_as_before) {
  count_both();
  chain.on_logged({7});
  hear(1, 6, store_up_to(7));
  EXPECT_EQ(chain.on_keeper(0, {}).committed, version_id{6});
  EXPECT_EQ(chain.of(1).counted(), keepers[1]);
  EXPECT_EQ(chain.on_keeper(1, {}).committed, version_id{7});
}

/// Its last word was not enough, and nothing is sent that it would answer.
TEST_F(copy_chain_test, a_copy_counts_when_the_own_store_has_dropped_what_it_lacks) {
  chain.on_logged({5});
  auto said = standing_at(0, 5, {{5}});
  said.restorable = {{{5}, {5}}};
  said.floor = {5};
  auto mine = store_up_to(5, {{2}, {5}});
  chain.on_standing(0, said, mine, now);
  chain.look_again(0, mine, now);
  EXPECT_EQ(chain.of(0).counted(), incarnation{});
  mine = {protocol::first_history(), {{{5}, {5}}}, {{{5}, {5}}}, {{5}}, {5}};
  chain.look_again(1, mine, now);
  EXPECT_EQ(chain.of(0).counted(), incarnation{});
  chain.look_again(0, mine, now);
  EXPECT_EQ(chain.of(0).counted(), keepers[0]);
}

TEST_F(copy_chain_test, a_snapshot_is_heard_of_when_all_have_it_and_in_the_order_of_versions) {
  count_both();
  const auto mine = store_up_to(5, {{2}, {4}});
  EXPECT_THAT(chain.on_snapshot({0}, {2}).snapshots, IsEmpty());
  EXPECT_THAT(chain.on_snapshot({0}, {4}).snapshots, IsEmpty());
  EXPECT_THAT(chain.on_standing(1, standing_at(1, 5, {{2}, {4}}), mine, now).snapshots, IsEmpty());
  EXPECT_THAT(chain.on_standing(0, standing_at(0, 5, {{2}}), mine, now).snapshots,
              ElementsAre(version_id{2}));
  EXPECT_THAT(chain.on_standing(0, standing_at(0, 5, {{2}, {4}}), mine, now).snapshots,
              ElementsAre(version_id{4}));
}

/// So that what steps wait for is nobody's twice.
TEST_F(copy_chain_test, the_next_version_is_awaited_of_the_last_one_that_holds_it_back) {
  count_both();
  EXPECT_EQ(chain.awaited_for(copied_part::log), std::nullopt);
  chain.on_logged({7});
  EXPECT_EQ(chain.awaited_for(copied_part::log), 0U);
  hear(0, 6, store_up_to(7));
  EXPECT_EQ(chain.awaited_for(copied_part::log), 1U);
  hear(1, 6, store_up_to(7));
  EXPECT_EQ(chain.awaited_for(copied_part::log), 0U);
  EXPECT_EQ(chain.awaited_for(copied_part::snapshot), std::nullopt);
}

} // namespace
} // namespace dlrun::ps_shard
