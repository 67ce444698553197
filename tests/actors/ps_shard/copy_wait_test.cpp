#include "actors/ps_shard/copy_wait.hpp"
#include "actors/ps_shard/time_to_keep.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using std::chrono::milliseconds;

constexpr auto tick = milliseconds(100);

class copy_wait_test : public testing::Test {
protected:
  /// Ticks go on while it is waited for, and after each the keeper says that.
  bool is_too_long_after(protocol::duration time, const protocol::copy_standing& said,
                         const awaited_parts& waits = {true, false}) {
    for (const auto end = now + time; now < end; now += tick) {
      wait.on_tick(waits, now);
      wait.on_standing(said, now);
    }
    return wait.is_too_long(now);
  }

  copy_wait wait;
  protocol::time_point now{};
};

TEST_F(copy_wait_test, a_copy_that_says_the_same_for_too_long_gets_nowhere) {
  EXPECT_FALSE(is_too_long_after(copy_wait::silence_max, {.end = {3}}));
  EXPECT_TRUE(is_too_long_after(2 * tick, {.end = {3}}));
}

/// Of what it has got before it says nothing new, though it gets it again.
TEST_F(copy_wait_test, counts_how_often_it_has_got_further) {
  wait.on_standing({.end = {3}, .snapshot_bytes = 1000}, now);
  const auto before = wait.news();
  wait.on_standing({.end = {3}, .snapshot_bytes = 500}, now);
  wait.on_standing({.end = {3}, .snapshot_bytes = 1000}, now);
  EXPECT_EQ(wait.news(), before);
  wait.on_standing({.end = {3}, .snapshot_bytes = 1001}, now);
  EXPECT_EQ(wait.news(), before + 1);
}

/// Before its PS shard begins: a large snapshot is on its way, and no record.
TEST_F(copy_wait_test, of_one_that_is_to_get_all_that_there_is_either_counts) {
  constexpr awaited_parts all{false, false, true};
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {.snapshot_bytes = 1000}, all));
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {.snapshot_bytes = 2000}, all));
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {.end = {1}, .snapshot_bytes = 2000}, all));
  EXPECT_TRUE(is_too_long_after(milliseconds(3200), {.end = {1}, .snapshot_bytes = 2000}, all));
}

/// Its keeper syncs it and reads it back meanwhile, and says nothing new.
TEST_F(copy_wait_test, a_large_snapshot_that_has_come_has_time_to_be_kept) {
  constexpr awaited_parts snapshots{false, true};
  constexpr auto bytes = 10 * disk_bytes_a_second_min;
  EXPECT_FALSE(is_too_long_after(milliseconds(12'900), {.snapshot_bytes = bytes}, snapshots));
  EXPECT_TRUE(is_too_long_after(milliseconds(300), {.snapshot_bytes = bytes}, snapshots));
}

/// A gradient of a gigabyte is written to a disk that others write to as well.
TEST_F(copy_wait_test, a_large_record_that_has_come_has_time_to_be_kept) {
  constexpr auto bytes = 10 * disk_bytes_a_second_min;
  EXPECT_FALSE(is_too_long_after(milliseconds(12'900), {.record_bytes = bytes}));
  EXPECT_TRUE(is_too_long_after(milliseconds(300), {.record_bytes = bytes}));
}

/// The thread that would take the next record syncs a snapshot.
TEST_F(copy_wait_test, a_record_may_wait_for_a_snapshot_that_is_being_kept) {
  wait.on_standing({.snapshot_bytes = 10 * disk_bytes_a_second_min}, now);
  EXPECT_FALSE(is_too_long_after(milliseconds(12'900), {.record_bytes = 1000}));
  EXPECT_TRUE(is_too_long_after(milliseconds(300), {.record_bytes = 1000}));
}

/// What it had in hand is kept: the next small record has no more time than any other.
TEST_F(copy_wait_test, what_is_kept_gives_no_more_time) {
  wait.on_standing({.record_bytes = 10 * disk_bytes_a_second_min}, now);
  EXPECT_FALSE(is_too_long_after(copy_wait::silence_max, {.end = {1}, .record_bytes = 0}));
  EXPECT_TRUE(is_too_long_after(2 * tick, {.end = {1}, .record_bytes = 0}));
}

TEST_F(copy_wait_test, one_that_gets_further_does) {
  for (std::uint64_t version = 0; version < 4; ++version)
    EXPECT_FALSE(is_too_long_after(milliseconds(2500), {.end = {version}}));
}

TEST_F(copy_wait_test, parts_of_a_piece_that_never_becomes_whole_count_once) {
  EXPECT_FALSE(is_too_long_after(milliseconds(2000), {.record_bytes = 1000}));
  EXPECT_FALSE(is_too_long_after(milliseconds(2000), {.record_bytes = 2000}));
  EXPECT_FALSE(is_too_long_after(milliseconds(1000), {.record_bytes = 0, .failure = "full"}));
  EXPECT_TRUE(is_too_long_after(milliseconds(1000), {.record_bytes = 2000}));
}

/// A disk on which no snapshot has room: records, which have some, do not hide that.
TEST_F(copy_wait_test, log_and_snapshots_count_each_for_itself) {
  constexpr awaited_parts both{true, true};
  for (std::uint64_t version = 0; version < 3; ++version)
    EXPECT_FALSE(is_too_long_after(milliseconds(1000), {.end = {version}, .snapshots = {{1}}}, both));
  EXPECT_TRUE(is_too_long_after(milliseconds(200), {.end = {9}, .snapshots = {{1}}}, both));
  EXPECT_FALSE(is_too_long_after(milliseconds(200), {.end = {9}, .snapshots = {{1}, {4}}}, both));
  EXPECT_FALSE(is_too_long_after(milliseconds(2000),
                                 {.end = {9}, .snapshots = {{1}, {4}}, .snapshot_bytes = 7}, both));
}

TEST_F(copy_wait_test, nobody_who_is_not_waited_for_is_too_late) {
  EXPECT_FALSE(is_too_long_after(std::chrono::minutes(1), {}, {}));
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {}));
}

TEST_F(copy_wait_test, time_in_which_this_process_was_stopped_does_not_count) {
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {}));
  now += std::chrono::minutes(1);
  EXPECT_FALSE(is_too_long_after(milliseconds(2500), {}));
}

} // namespace
} // namespace dlrun::ps_shard
