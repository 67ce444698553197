#include "actors/ps_shard/copy_stream.hpp"
#include "actors/ps_shard/time_to_keep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_kind;

class copy_stream_test : public testing::Test {
protected:
  /// A stream to a copy that stands like that.
  void begin(protocol::copy_standing standing) {
    if (standing.restorable.empty()) standing.restorable = {{{0}, {0}}};
    stream.begin(now);
    stream.take_number();
    standing.stream = stream.stream();
    standing.taken = 1;
    ASSERT_TRUE(stream.on_standing(standing, now));
  }
  std::vector<copy_item> all() {
    std::vector<copy_item> items;
    while (const auto item = stream.next(mine)) {
      items.push_back(*item);
      stream.on_snapshot_sent();
    }
    return items;
  }

  protocol::time_point now{};
  copy_stream stream;
  own_store mine;
};

copy_item record(std::uint64_t step, timeline_id on = {}) { return {copy_kind::record, {step}, {}, on}; }
copy_item snapshot(std::uint64_t version, timeline_id on = {}) {
  return {copy_kind::snapshot, {version}, {}, on};
}
copy_item floor_at(std::uint64_t version, std::optional<version_id> kept = std::nullopt) {
  return {copy_kind::floor, {version}, kept};
}

TEST_F(copy_stream_test, an_empty_copy_is_filled_from_version_0_where_the_log_begins_there) {
  mine.restorable = mine.logged = {{{0}, {3}}};
  begin({});
  EXPECT_THAT(all(), testing::ElementsAre(record(0), record(1), record(2)));
}

TEST_F(copy_stream_test, one_is_filled_from_the_oldest_snapshot_where_the_log_begins_there) {
  mine.restorable = mine.logged = {{{0}, {0}}, {{4}, {7}}};
  mine.snapshots = {{4}, {6}};
  mine.floor = {4};
  begin({});
  EXPECT_THAT(all(),
              testing::ElementsAre(snapshot(4), floor_at(4), record(4), record(5), snapshot(6), record(6)));
}

/// R27: else a copy that lags behind would keep the whole log until it lags no more.
TEST_F(copy_stream_test, a_copy_hears_of_the_floor_as_soon_as_it_is_past_it) {
  mine.restorable = mine.logged = {{{0}, {0}}, {{4}, {20}}};
  mine.snapshots = {{4}, {8}};
  mine.floor = {4};
  begin({.end = {6}, .restorable = {{{0}, {6}}}, .snapshots = {{4}}});
  EXPECT_EQ(stream.next(mine), floor_at(4));
  EXPECT_EQ(stream.next(mine), record(6)) << "once";
}

TEST_F(copy_stream_test, one_that_would_drop_what_the_copy_lacks_waits_until_that_is_there) {
  mine.restorable = mine.logged = {{{0}, {0}}, {{2}, {2}}, {{4}, {7}}};
  mine.snapshots = {{2}, {4}};
  mine.floor = {4};
  begin({.end = {6}, .restorable = {{{0}, {6}}}, .snapshots = {{4}}});
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(2), floor_at(4, version_id{2}), record(6)));
}

TEST_F(copy_stream_test, a_floor_goes_beside_a_snapshot_above_it) {
  mine.restorable = mine.logged = {{{0}, {9}}};
  mine.snapshots = {{4}, {8}};
  begin({.end = {9}, .restorable = {{{0}, {9}}}, .snapshots = {{4}}});
  EXPECT_EQ(stream.next(mine), snapshot(8));
  mine.floor = {4};
  EXPECT_EQ(stream.next(mine), floor_at(4));
  mine.floor = {9}; // and what is below it is being sent
  EXPECT_EQ(stream.next(mine), std::nullopt);
}

TEST_F(copy_stream_test, the_snapshot_that_the_floor_left_is_kept) {
  mine.restorable = mine.logged = {{{0}, {0}}, {{2}, {2}}, {{4}, {4}}};
  mine.snapshots = {{2}, {4}};
  mine.floor = {4};
  begin({});
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(2), snapshot(4), floor_at(4, version_id{2})));
}

TEST_F(copy_stream_test, where_there_is_no_log_snapshots_alone_are_sent_the_oldest_first) {
  mine.restorable = {{{0}, {0}}, {{4}, {4}}, {{9}, {9}}};
  mine.snapshots = {{4}, {9}};
  mine.floor = {4};
  begin({});
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(4), floor_at(4), snapshot(9)));
}

TEST_F(copy_stream_test, a_copy_without_a_log_goes_to_the_next_timeline_before_it_gets_what_is_of_it) {
  mine.history = {{{0}, {0}}, {{1}, {4}}};
  mine.restorable = {{{0}, {0}}, {{4}, {4}}, {{8}, {8}}};
  mine.snapshots = {{4}, {8}};
  begin({.end = {8}, .restorable = mine.restorable, .snapshots = mine.snapshots});
  EXPECT_THAT(all(), testing::ElementsAre(copy_item{copy_kind::rewind, {4}, {}, {1}}, snapshot(8, {1})));
}

TEST_F(copy_stream_test, a_copy_with_more_than_the_store_is_sent_nothing) {
  mine.restorable = mine.logged = {{{0}, {3}}};
  begin({.end = {5}, .restorable = {{{0}, {5}}}});
  EXPECT_THAT(all(), testing::IsEmpty());
}

TEST_F(copy_stream_test, a_copy_goes_through_the_timelines_one_by_one) {
  mine.history = {{{0}, {0}}, {{1}, {4}}, {{3}, {6}}};
  mine.restorable = mine.logged = {{{0}, {7}}};
  begin({.end = {3}, .restorable = {{{0}, {3}}}});
  const copy_item first{copy_kind::rewind, {4}, {}, {1}};
  const copy_item second{copy_kind::rewind, {6}, {}, {3}};
  EXPECT_THAT(all(),
              testing::ElementsAre(record(3), first, record(4, {1}), record(5, {1}), second, record(6, {3})));
}

TEST_F(copy_stream_test, what_a_copy_has_above_the_branch_goes_first) {
  mine.history = {{{0}, {0}}, {{1}, {8}}, {{2}, {3}}};
  mine.restorable = mine.logged = {{{0}, {4}}};
  begin({.end = {5}, .restorable = {{{0}, {5}}}});
  const copy_item first{copy_kind::rewind, {5}, {}, {1}};
  const copy_item second{copy_kind::rewind, {3}, {}, {2}};
  EXPECT_THAT(all(), testing::ElementsAre(first, second, record(3, {2})));
}

/// It is the same on both timelines, whichever it was taken on.
TEST_F(copy_stream_test, a_snapshot_up_to_the_branch_goes_on_whichever_timeline_the_copy_is) {
  mine.history = {{{0}, {0}}, {{1}, {3}}};
  mine.restorable = mine.logged = {{{0}, {3}}};
  mine.snapshots = {{2}, {3}};
  begin({.end = {3}, .restorable = {{{0}, {3}}}});
  const copy_item back{copy_kind::rewind, {3}, {}, {1}};
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(2), snapshot(3), back));
  begin({.timeline = {1}, .end = {3}, .restorable = {{{0}, {3}}}});
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(2, {1}), snapshot(3, {1})));
}

TEST_F(copy_stream_test, a_lower_snapshot_that_is_lacking_goes_though_a_higher_one_is_there) {
  mine.restorable = mine.logged = {{{0}, {6}}};
  mine.snapshots = {{2}, {4}};
  begin({.end = {6}, .restorable = {{{0}, {6}}}, .snapshots = {{4}}});
  EXPECT_THAT(all(), testing::ElementsAre(snapshot(2)));
}

TEST_F(copy_stream_test, one_below_the_floor_of_the_copy_would_not_be_taken) {
  mine.restorable = mine.logged = {{{0}, {6}}};
  mine.snapshots = {{2}, {4}};
  begin({.end = {6}, .floor = {4}, .restorable = {{{0}, {0}}, {{4}, {6}}}, .snapshots = {{4}}});
  EXPECT_THAT(all(), testing::IsEmpty());
}

TEST_F(copy_stream_test, records_do_not_wait_for_a_snapshot_and_orders_do) {
  mine.restorable = mine.logged = {{{0}, {4}}};
  mine.snapshots = {{2}};
  mine.floor = {2};
  begin({.end = {2}, .restorable = {{{0}, {2}}}});
  EXPECT_EQ(stream.next(mine), snapshot(2));
  EXPECT_EQ(stream.next(mine), record(2));
  EXPECT_EQ(stream.next(mine), record(3));
  EXPECT_EQ(stream.next(mine), std::nullopt);
  stream.on_snapshot_sent();
  EXPECT_EQ(stream.next(mine), (copy_item{copy_kind::floor, {2}}));
}

TEST_F(copy_stream_test, a_word_that_contradicts_itself_is_not_heard) {
  begin({});
  const auto is_heard = [&](protocol::version_set restorable, std::vector<version_id> snapshots) {
    return stream.on_standing({.stream = stream.stream(),
                               .taken = 1,
                               .restorable = std::move(restorable),
                               .snapshots = std::move(snapshots)},
                              now);
  };
  EXPECT_TRUE(is_heard({{{0}, {2}}, {{4}, {5}}}, {{1}, {4}}));
  EXPECT_FALSE(is_heard({}, {}));
  EXPECT_FALSE(is_heard({{{2}, {0}}}, {}));
  EXPECT_FALSE(is_heard({{{4}, {5}}, {{0}, {2}}}, {}));
  EXPECT_FALSE(is_heard({{{0}, {2}}}, {{4}, {1}}));
}

TEST_F(copy_stream_test, where_a_record_is_missing_the_snapshot_behind_it_goes_on) {
  mine.restorable = {{{0}, {4}}};
  mine.logged = {{{0}, {2}}, {{3}, {4}}};
  mine.snapshots = {{3}};
  begin({});
  EXPECT_THAT(all(), testing::ElementsAre(record(0), record(1), snapshot(3), record(3)));
}

TEST_F(copy_stream_test, a_copy_that_cannot_go_back_so_far_begins_anew) {
  mine.history = {{{0}, {0}}, {{1}, {5}}};
  mine.restorable = mine.logged = {{{0}, {0}}, {{6}, {7}}};
  mine.snapshots = {{6}};
  begin({.end = {9}, .restorable = {{{0}, {0}}, {{8}, {9}}}, .snapshots = {{8}}});
  const copy_item back{copy_kind::rewind, {0}, {}, {1}};
  EXPECT_THAT(all(), testing::ElementsAre(back, snapshot(6, {1}), record(6, {1})));
}

TEST_F(copy_stream_test, nothing_is_sent_before_the_copy_has_said_where_it_stands) {
  mine.restorable = mine.logged = {{{0}, {3}}};
  stream.begin(now);
  stream.take_number();
  EXPECT_FALSE(stream.next(mine));
  EXPECT_FALSE(
      stream.on_standing({.stream = stream.stream() + 1, .taken = 1, .restorable = {{{0}, {0}}}}, now));
  EXPECT_FALSE(stream.next(mine));
}

TEST_F(copy_stream_test, so_many_parts_are_on_the_way_at_most) {
  begin({});
  while (stream.has_room()) stream.take_number();
  EXPECT_TRUE(stream.on_standing({.stream = stream.stream(), .taken = 3, .restorable = {{{0}, {0}}}}, now));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream.has_room());
    stream.take_number();
  }
  EXPECT_FALSE(stream.has_room());
}

TEST_F(copy_stream_test, a_stream_without_an_answer_is_begun_anew_after_a_while) {
  begin({});
  EXPECT_FALSE(stream.is_stuck(now + 2 * copy_stream::silence_max)) << "nothing is on the way";
  stream.take_number();
  EXPECT_FALSE(stream.is_stuck(now + copy_stream::silence_max / 2));
  EXPECT_TRUE(stream.is_stuck(now + copy_stream::silence_max));
}

/// A record of a gigabyte is being written: the stream that has brought it is not begun anew.
TEST_F(copy_stream_test, a_keeper_may_be_silent_while_it_writes_what_it_has_in_hand) {
  begin({});
  stream.take_number();
  stream.take_number();
  constexpr auto bytes = 10 * disk_bytes_a_second_min;
  EXPECT_TRUE(stream.on_standing(
      {.stream = stream.stream(), .taken = 2, .restorable = {{{0}, {0}}}, .record_bytes = bytes}, now));
  EXPECT_FALSE(stream.is_stuck(now + copy_stream::silence_max + std::chrono::seconds(9)));
  EXPECT_TRUE(stream.is_stuck(now + copy_stream::silence_max + std::chrono::seconds(10)));
}

TEST_F(copy_stream_test, one_that_the_keeper_refuses_is_begun_anew_after_a_second) {
  mine.restorable = mine.logged = {{{0}, {3}}};
  begin({});
  EXPECT_TRUE(stream.on_standing(
      {.stream = stream.stream(), .taken = 1, .restorable = {{{0}, {3}}}, .failure = "full"}, now));
  EXPECT_FALSE(stream.next(mine));
  EXPECT_FALSE(stream.is_stuck(now));
  EXPECT_TRUE(stream.is_stuck(now + copy_stream::patience));
}

} // namespace
} // namespace dlrun::ps_shard
