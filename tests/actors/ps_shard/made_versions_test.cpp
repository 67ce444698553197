// When a PS shard may make its next version, and what of those that are made is on disk.
#include "actors/ps_shard/made_versions.hpp"
#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <set>

namespace dlrun::ps_shard {
namespace {

using protocol::durability;
using test::only;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Of ten steps with one slot of three records; B = 1; a pool of one snapshot.
std::shared_ptr<const ps_shard_core_config> config(durability mode, std::set<version_id> gates = {}) {
  ps_shard_core_config made;
  made.steps = 10;
  made.durability = mode;
  made.gates = std::move(gates);
  made.snapshots_in_work_max = 1;
  return std::make_shared<const ps_shard_core_config>(std::move(made));
}

struct made_versions_test : testing::Test {
  static void begin(made_versions& versions, std::uint64_t step) {
    versions.begin({step}, {{100 + step}, coverage{protocol::make_slot_range(0, 1)}}, {3});
  }
  /// Without its record in the log. @returns whether its root is in use still
  static bool make(made_versions& versions, std::uint64_t step) {
    begin(versions, step);
    return versions.on_applied({step}, {});
  }

  made_versions logged{config(durability::every_step)};
  made_versions snapshotted{config(durability::snapshots)};
  ps_shard_actions out;
};

TEST_F(made_versions_test, may_make_one_version_more_than_its_log_holds_and_one_that_is_being_appended) {
  EXPECT_TRUE(logged.may_make({1}));
  make(logged, 0);
  EXPECT_FALSE(logged.may_make({2}));
  EXPECT_TRUE(logged.on_committed({1}, out));
  EXPECT_TRUE(logged.may_make({2}));
}

TEST_F(made_versions_test, waits_for_the_evaluation_at_a_gate) {
  made_versions gated{config(durability::off, {{1}})};
  gated.restart({});
  EXPECT_TRUE(gated.may_make({1}));
  EXPECT_FALSE(gated.may_make({2}));
  gated.gate().raise({5});
  EXPECT_TRUE(gated.may_make({2}));
}

TEST_F(made_versions_test, waits_for_room_for_a_snapshot_only_if_one_is_due) {
  make(snapshotted, 0);
  snapshotted.snapshot_applied(out);
  snapshotted.book().ask_for({3});
  EXPECT_TRUE(snapshotted.may_make({2}));
  EXPECT_FALSE(snapshotted.may_make({3}));
  snapshotted.on_snapshot_durable({1});
  EXPECT_TRUE(snapshotted.may_make({3}));
}

TEST_F(made_versions_test, says_what_of_the_store_it_waits_for) {
  EXPECT_EQ(logged.held_by({1}), store_wait::nothing);
  make(logged, 0);
  EXPECT_EQ(logged.held_by({2}), store_wait::log);
  make(snapshotted, 0);
  snapshotted.snapshot_applied(out);
  snapshotted.book().ask_for({3});
  EXPECT_EQ(snapshotted.held_by({2}), store_wait::nothing);
  EXPECT_EQ(snapshotted.held_by({3}), store_wait::snapshot);
}

TEST_F(made_versions_test, that_waits_for_an_evaluation_does_not_wait_for_the_store) {
  made_versions gated{config(durability::every_step, {{1}})};
  gated.restart({});
  make(gated, 0);
  EXPECT_EQ(gated.held_by({2}), store_wait::nothing);
  gated.gate().raise({5});
  EXPECT_EQ(gated.held_by({2}), store_wait::log);
}

TEST_F(made_versions_test, what_was_begun_early_is_made_and_no_more_than_that) {
  logged.begin_early({0});
  EXPECT_TRUE(logged.is_making() && logged.is_early());
  begin(logged, 0);
  EXPECT_TRUE(logged.is_making() && !logged.is_early());
}

TEST_F(made_versions_test, serves_the_version_before_unless_its_buffer_is_written_to) {
  make(logged, 0);
  EXPECT_TRUE(logged.serves_previous());
  logged.begin_early({1});
  EXPECT_FALSE(logged.serves_previous());
}

TEST_F(made_versions_test, a_root_is_released_when_it_is_applied_and_logged_whichever_comes_first) {
  EXPECT_TRUE(make(logged, 0)) << "the log needs it";
  logged.on_committed({1}, out);
  EXPECT_EQ(out, (ps_shard_actions{release{{100}}}));
  out.clear();
  begin(logged, 1);
  logged.on_committed({2}, out);
  EXPECT_THAT(out, IsEmpty()) << "it is being applied";
  EXPECT_EQ(logged.committed(), version_id{1}) << "an append may be ahead of the update";
  EXPECT_FALSE(logged.on_applied({1}, {}));
  EXPECT_EQ(logged.committed(), version_id{2});
}

TEST_F(made_versions_test, roots_of_appends_that_are_dropped_are_released_once) {
  make(logged, 0);
  begin(logged, 1);
  logged.drop_appends(out);
  EXPECT_EQ(out, (ps_shard_actions{release{{100}}})) << "that of step 1 is open still";
}

TEST_F(made_versions_test, hears_of_what_it_knows_without_effect) {
  make(logged, 0);
  EXPECT_TRUE(logged.on_committed({1}, out));
  out.clear();
  EXPECT_FALSE(logged.on_committed({1}, out));
  EXPECT_THAT(out, IsEmpty());
}

TEST_F(made_versions_test, without_a_log_a_version_is_committed_with_its_snapshot) {
  make(snapshotted, 0);
  EXPECT_EQ(snapshotted.committed(), version_id{0});
  snapshotted.snapshot_applied(out);
  snapshotted.snapshot_applied(out);
  ASSERT_THAT(only<take_snapshot>(out), SizeIs(1)) << "it is being written";
  EXPECT_EQ(only<take_snapshot>(out)[0].ledger, snapshotted.totals());
  snapshotted.on_snapshot_durable({1});
  EXPECT_EQ(snapshotted.committed(), version_id{1});
  EXPECT_THAT(snapshotted.durable().snapshots, ElementsAre(version_id{1}));
}

TEST_F(made_versions_test, a_snapshot_of_the_version_that_is_being_changed_waits) {
  auto named = *config(durability::snapshots);
  named.named_snapshots = {{1}};
  made_versions versions{std::make_shared<const ps_shard_core_config>(named)};
  make(versions, 0);
  begin(versions, 1);
  versions.snapshot_missing(out);
  EXPECT_THAT(out, IsEmpty()) << "it is neither at hand nor in a log";
}

TEST_F(made_versions_test, where_nothing_is_kept_what_is_applied_is_all_there_is) {
  made_versions kept_nowhere{config(durability::off)};
  EXPECT_FALSE(make(kept_nowhere, 0));
  EXPECT_EQ(kept_nowhere.committed(), version_id{1});
  EXPECT_EQ(kept_nowhere.durable(), protocol::durability_status{});
}

} // namespace
} // namespace dlrun::ps_shard
