#include "actors/data_dispatcher/shard_watch.hpp"

#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

/// Of a job with two PS shards.
class shard_watch_test : public testing::Test {
protected:
  static protocol::shard_status status(std::uint32_t shard, std::uint64_t start, std::uint64_t sequence,
                                       std::uint64_t applied) {
    protocol::shard_status made;
    made.shard = {shard};
    made.self = {{start}, 0};
    made.sequence = sequence;
    made.applied = made.committed = {applied};
    made.durable.history = protocol::first_history();
    return made;
  }
  bool hear(const protocol::shard_status& what) {
    out.clear();
    return watch.on_status(what, out);
  }

  shard_watch watch{2};
  data_dispatcher_actions out;
};

TEST_F(shard_watch_test, statuses_of_older_starts_and_late_ones_are_ignored) {
  EXPECT_TRUE(hear(status(0, 2, 1, 5)));
  EXPECT_FALSE(hear(status(0, 1, 9, 9)));
  EXPECT_EQ(watch.statuses().at({0}).applied, version_id{5});
  EXPECT_TRUE(hear(status(1, 1, 2, 7)));
  EXPECT_FALSE(hear(status(1, 1, 1, 4)));
  EXPECT_FALSE(hear(status(9, 1, 1, 1))) << "there is no such shard";
  EXPECT_EQ(watch.statuses().at({1}).applied, version_id{7});
}

TEST_F(shard_watch_test, what_an_older_start_said_is_late_also_when_nothing_else_was_heard) {
  EXPECT_TRUE(watch.on_started({0}, {2}));
  EXPECT_FALSE(hear(status(0, 1, 9, 9)));
  EXPECT_THAT(watch.statuses(), IsEmpty());
  EXPECT_FALSE(watch.on_started({0}, {2})) << "known";
}

TEST_F(shard_watch_test, a_start_that_is_over_is_believed_no_more) {
  EXPECT_TRUE(watch.on_lost({0}, {1}));
  EXPECT_FALSE(hear(status(0, 1, 9, 9)));
  EXPECT_FALSE(watch.on_lost({0}, {1}));
  EXPECT_TRUE(hear(status(0, 2, 1, 3)));
}

TEST_F(shard_watch_test, a_start_has_resumed_once_when_it_is_beyond_what_it_restored) {
  hear(status(0, 2, 1, 5));
  EXPECT_THAT(out, IsEmpty());
  hear(status(0, 2, 2, 6));
  const auto resumed = told<protocol::ps_shard_resumed>(out);
  ASSERT_THAT(resumed, SizeIs(1));
  EXPECT_EQ(resumed[0].incarnation, incarnation{2});
  hear(status(0, 2, 3, 7));
  EXPECT_THAT(out, IsEmpty());
}

TEST_F(shard_watch_test, each_start_of_a_worker_contributes_first_once) {
  auto with = status(0, 1, 1, 0);
  with.contributions = {{{0}, {1}, {3}}};
  hear(with);
  EXPECT_THAT(told<protocol::worker_contributed>(out), SizeIs(1));
  with.sequence = 2;
  hear(with);
  EXPECT_THAT(out, IsEmpty());
  with.sequence = 3;
  with.contributions = {{{0}, {2}, {5}}};
  hear(with);
  EXPECT_THAT(told<protocol::worker_contributed>(out), SizeIs(1));
}

TEST_F(shard_watch_test, what_holds_for_all_holds_for_nobody_before_all_were_heard) {
  hear(status(0, 1, 1, 5));
  EXPECT_FALSE(watch.all_on({0}));
  EXPECT_FALSE(watch.all_have(0));
  EXPECT_FALSE(watch.all_committed({5}));
  hear(status(1, 1, 1, 5));
  EXPECT_TRUE(watch.all_on({0}));
  EXPECT_TRUE(watch.all_have(0));
  EXPECT_TRUE(watch.all_committed({5}));
}

TEST_F(shard_watch_test, a_revision_is_there_when_the_timeline_of_each_has_it_or_a_newer_one) {
  auto with = status(0, 1, 1, 5);
  with.durable.history = extended(protocol::first_history(), {{1}, {5}, 2, {}});
  hear(with);
  hear(status(1, 1, 1, 5));
  EXPECT_FALSE(watch.all_have(1));
  with.shard = {1};
  with.sequence = 2;
  hear(with);
  EXPECT_TRUE(watch.all_have(1));
  EXPECT_FALSE(watch.all_have(3));
  with.sequence = 3;
  with.durable.history.clear(); // nothing is kept, or a hostile status
  hear(with);
  EXPECT_FALSE(watch.all_have(0));
}

TEST_F(shard_watch_test, shards_on_two_timelines_have_committed_nothing_together) {
  hear(status(0, 1, 1, 5));
  auto other = status(1, 1, 1, 5);
  other.timeline = {1};
  hear(other);
  EXPECT_FALSE(watch.all_committed({5}));
}

} // namespace
} // namespace dlrun::data_dispatcher
