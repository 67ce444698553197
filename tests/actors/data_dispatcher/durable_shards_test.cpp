#include "actors/data_dispatcher/durable_shards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using testing::ElementsAre;

/// Two PS shards.
class durable_shards_test : public testing::Test {
protected:
  void note(std::uint32_t shard, std::uint64_t logged, std::vector<version_id> snapshots,
            timeline_id timeline = {}) {
    protocol::shard_status status;
    status.shard = {shard};
    status.timeline = timeline;
    status.durable.restorable = {{{1}, {logged}}};
    status.durable.snapshots = std::move(snapshots);
    shards.note(status);
  }

  durable_shards shards{2, protocol::planted_bug::none};
};

TEST_F(durable_shards_test, all_have_what_each_has_and_version_0) {
  note(0, 7, {{2}, {4}, {6}});
  EXPECT_FALSE(shards.all_reported());
  note(1, 5, {{4}, {5}});
  ASSERT_TRUE(shards.all_reported());
  EXPECT_THAT(shards.snapshots(), ElementsAre(version_id{0}, version_id{4}));
  EXPECT_EQ(shards.restorable(protocol::first_history()), (protocol::version_set{{{0}, {5}}}));
}

TEST_F(durable_shards_test, what_was_made_on_an_older_timeline_is_good_up_to_the_branch) {
  note(0, 7, {});
  note(1, 9, {}, {1});
  EXPECT_FALSE(shards.all_on({1}));
  const auto history = extended(protocol::first_history(), {{1}, {3}, 0, {}});
  EXPECT_EQ(shards.restorable(history), (protocol::version_set{{{0}, {3}}}));
  note(0, 7, {}, {1});
  EXPECT_TRUE(shards.all_on({1}));
  EXPECT_EQ(shards.restorable(history), (protocol::version_set{{{0}, {7}}}));
}

TEST_F(durable_shards_test, what_a_lost_shard_said_does_not_count) {
  note(0, 7, {{2}});
  note(1, 7, {{2}});
  shards.forget({1});
  EXPECT_FALSE(shards.all_reported());
  EXPECT_FALSE(shards.all_on({0}));
}

} // namespace
} // namespace dlrun::data_dispatcher
