// What a copy does to a store, against the store that it is a copy of, whose pieces it is sent.
#include "actors/common/history_conversion.hpp"
#include "tests/actors/keeper/mirror_fixture.hpp"

#include <gmock/gmock.h>

namespace dlrun::keeper {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class store_mirror_test : public mirrored_store {};

TEST_F(store_mirror_test, what_it_is_sent_is_there_byte_for_byte) {
  ASSERT_TRUE(append(*primary, 0, 30));
  ASSERT_TRUE(snapshot(*primary, 20));
  const auto empty = begin();
  EXPECT_EQ(empty.end, version_id{0});
  EXPECT_EQ(empty.shard, shard_start);
  send_records(0, 30);
  const auto full = send(copy_kind::snapshot, 20);
  EXPECT_TRUE(holds_all(copy(), 0, 30));
  EXPECT_TRUE(has_snapshot(copy(), 20));
  EXPECT_EQ(full.end, version_id{30});
  EXPECT_EQ(full.restorable, (protocol::version_set{{{0}, {30}}}));
  EXPECT_THAT(full.snapshots, ElementsAre(version_id{20}));
}

TEST_F(store_mirror_test, a_copy_that_begins_with_a_snapshot_goes_on_from_there) {
  ASSERT_TRUE(append(*primary, 0, 30));
  ASSERT_TRUE(snapshot(*primary, 20));
  begin();
  send(copy_kind::snapshot, 20);
  send_records(20, 30);
  EXPECT_TRUE(holds_all(copy(), 20, 30));
  EXPECT_THAT(begin().restorable,
              ElementsAre(base::version_range{{0}, {0}}, base::version_range{{20}, {30}}));
}

TEST_F(store_mirror_test, parts_that_are_lost_doubled_or_late_change_nothing) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  const auto before = begin();
  const auto parts = parts_of(copy_kind::record, large_step);
  ASSERT_GE(parts.size(), 3U);
  EXPECT_FALSE(give(parts[1]).value()) << "the one before it is lost";
  EXPECT_EQ(taken(parts[0]).record_bytes, parts[0].bytes);
  EXPECT_FALSE(give(parts[0]).value()) << "it comes again";
  const std::vector<played_part> rest{parts.begin() + 1, parts.end()};
  EXPECT_EQ(take(rest).taken, before.taken + parts.size());
  EXPECT_TRUE(holds(copy(), large_step));
}

TEST_F(store_mirror_test, a_higher_stream_drops_the_piece_in_hand_and_a_lower_one_is_over) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  begin();
  const auto old = parts_of(copy_kind::record, large_step);
  EXPECT_TRUE(give(old[0]).value());
  begin();
  for (const auto& late : old) EXPECT_FALSE(give(late).value());
  send_records(large_step, large_step + 1);
  EXPECT_TRUE(holds(copy(), large_step));
}

TEST_F(store_mirror_test, a_stream_whose_begin_is_lost_is_not_taken) {
  ASSERT_TRUE(append(*primary, 0, 1));
  stamped({.kind = copy_kind::hello});
  for (const auto& part : parts_of(copy_kind::record, 0)) EXPECT_FALSE(give(part).value());
  EXPECT_EQ(mirror.store(), nullptr);
}

/// R25.
TEST_F(store_mirror_test, an_older_start_of_the_ps_shard_is_not_heard_any_more) {
  ASSERT_TRUE(append(*primary, 0, 1));
  begin({6});
  EXPECT_FALSE(give(stamped({.kind = copy_kind::hello}, {5})).value());
  for (const auto& part : parts_of(copy_kind::record, 0)) EXPECT_FALSE(give(part).value());
  EXPECT_EQ(copy().next_step(), step_id{0});
}

TEST_F(store_mirror_test, it_ends_where_a_newer_start_has_opened_the_store) {
  auto taken_over = copy_options().store;
  taken_over.opener = {9};
  ASSERT_TRUE(persistence::shard_store::open(taken_over));
  const auto answer = give(copy_part{.incarnation = shard_start, .stream = 1, .kind = copy_kind::hello});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::fenced);
}

TEST_F(store_mirror_test, it_waits_for_who_has_the_store_open) {
  auto held = copy_options().store;
  held.opener = {1};
  auto other = persistence::shard_store::open(held).value();
  EXPECT_FALSE(give(stamped({.incarnation = shard_start, .kind = copy_kind::hello})).value());
  other.reset();
  EXPECT_EQ(begin().failure, "");
}

TEST_F(store_mirror_test, a_record_with_a_gap_before_it_is_refused_and_one_that_is_there_is_passed_over) {
  ASSERT_TRUE(append(*primary, 0, 4));
  begin();
  send_records(0, 2);
  send_records(0, 1);
  EXPECT_EQ(copy().next_step(), step_id{2});
  EXPECT_THAT(send(copy_kind::record, 3).failure, HasSubstr("steps before it are missing"));
  EXPECT_EQ(copy().next_step(), step_id{2});
}

TEST_F(store_mirror_test, what_would_take_too_much_memory_is_refused_before_it_comes) {
  ASSERT_TRUE(append(*primary, 0, 1));
  begin();
  auto record = parts_of(copy_kind::record, 0).front();
  record.total_bytes = copy_options().record_bytes_max + 1;
  EXPECT_THAT(taken(record).failure, HasSubstr("the record is too large"));
  begin();
  const copy_part kept{.kind = copy_kind::snapshot, .version = {0}, .total_bytes = std::uint64_t{17} << 20};
  EXPECT_THAT(taken(stamped(kept)).failure, HasSubstr("too much is kept with the snapshot"));
}

/// What does not come is as if it were damaged, and the next stream goes on.
TEST_F(store_mirror_test, a_part_whose_bytes_do_not_come_ends_the_stream) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  begin();
  auto parts = parts_of(copy_kind::record, large_step);
  EXPECT_EQ(taken(parts[0]).failure, "");
  const auto lost = mirror.take(sealed(parts[1]), []() -> result<std::span<const std::byte>> {
    return fail(error_code::role_lost, "gone");
  });
  EXPECT_THAT(lost.value()->failure, HasSubstr("its bytes have not come: gone"));
  EXPECT_FALSE(give(parts[1]).value());
  begin();
  parts = parts_of(copy_kind::record, large_step);
  parts[1].come.pop_back();
  EXPECT_EQ(taken(parts[0]).failure, "");
  EXPECT_THAT(taken(parts[1]).failure, HasSubstr("another number of bytes"));
  begin();
  send_records(large_step, large_step + 1);
  EXPECT_TRUE(holds(copy(), large_step));
}

TEST_F(store_mirror_test, nobody_waits_for_the_bytes_of_a_part_that_is_not_due_or_does_not_fit) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  const auto give_unread = [&](const played_part& part) {
    return mirror.take(sealed(part), []() -> result<std::span<const std::byte>> {
      ADD_FAILURE() << "somebody waits";
      return fail(error_code::role_lost, "gone");
    });
  };
  begin();
  auto parts = parts_of(copy_kind::record, large_step);
  EXPECT_FALSE(give_unread(parts[1]).value());
  EXPECT_EQ(taken(parts[0]).failure, "");
  EXPECT_FALSE(give_unread(parts[0]).value());
  parts[1].offset += 1;
  EXPECT_THAT(give_unread(parts[1]).value()->failure, HasSubstr("does not go on"));
  begin();
  parts = parts_of(copy_kind::record, large_step);
  parts[0].total_bytes = copy_options().record_bytes_max + 1;
  EXPECT_THAT(give_unread(parts[0]).value()->failure, HasSubstr("the record is too large"));
}

TEST_F(store_mirror_test, a_part_that_does_not_fit_its_piece_is_refused) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  const auto refused = [&](auto change) {
    begin();
    auto parts = parts_of(copy_kind::record, large_step);
    change(parts[1]);
    return take(parts).failure;
  };
  EXPECT_THAT(refused([](copy_part& part) { part.offset += 1; }), HasSubstr("does not go on"));
  EXPECT_THAT(refused([](copy_part& part) { part.total_bytes = part.offset; }), HasSubstr("does not go on"));
  EXPECT_THAT(refused([](copy_part& part) { part.version = {1}; }), HasSubstr("of another piece"));
  EXPECT_THAT(refused([](copy_part& part) { part.kind = copy_kind::snapshot; }), HasSubstr("does not go on"))
      << "no snapshot has begun";
  EXPECT_EQ(copy().next_step(), step_id{large_step});
}

TEST_F(store_mirror_test, it_goes_back_as_its_ps_shard_did_and_takes_what_is_of_the_new_timeline_only) {
  ASSERT_TRUE(append(*primary, 0, 10));
  begin();
  send_records(0, 10);
  auto late = parts_of(copy_kind::record, 9);
  const std::vector<persistence::history_entry> history{{{1}, {6}, 0, {}}};
  ASSERT_TRUE(primary->rewind(history, {6}));
  ASSERT_TRUE(append(*primary, 6, 8, 1));
  begin();
  const copy_part rewind{
      .kind = copy_kind::rewind, .timeline = {1}, .version = {6}, .history = common::history_from(history)};
  const auto back = taken(stamped(rewind));
  EXPECT_EQ(back.timeline, timeline_id{1});
  EXPECT_EQ(back.end, version_id{6});
  send_records(6, 8, {1});
  EXPECT_TRUE(holds_all(copy(), 0, 6));
  EXPECT_TRUE(holds_all(copy(), 6, 8, 1));
  late.front().stream += 1;
  late.front().number = taken(stamped({.kind = copy_kind::floor})).taken;
  EXPECT_THAT(taken(late.front()).failure, HasSubstr("of another timeline"));
}

/// What is below the branch is of both timelines.
TEST_F(store_mirror_test, what_it_lacks_below_the_branch_comes_under_the_new_timeline) {
  ASSERT_TRUE(append(*primary, 0, 10));
  ASSERT_TRUE(snapshot(*primary, 3));
  begin();
  send_records(0, 4);
  const std::vector<persistence::history_entry> history{{{1}, {6}, 0, {}}};
  begin();
  taken(stamped({.kind = copy_kind::rewind,
                 .timeline = {1},
                 .version = {4},
                 .history = common::history_from(history)}));
  EXPECT_THAT(send(copy_kind::snapshot, 3, {1}).snapshots, ElementsAre(version_id{3}));
  send_records(4, 6, {1});
  ASSERT_EQ(copy().next_step(), step_id{6});
  const auto copied = copy().read({5}).value();
  EXPECT_EQ(copied.payload, primary->read({5})->payload);
  EXPECT_EQ(copied.head.timeline, timeline_id{1});
}

TEST_F(store_mirror_test, records_come_between_the_parts_of_a_snapshot) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  ASSERT_TRUE(snapshot(*primary, 1));
  begin();
  send_records(0, 2);
  const auto snapshot_parts = parts_of(copy_kind::snapshot, 1);
  ASSERT_GE(snapshot_parts.size(), 2U);
  std::uint64_t step = 2;
  std::vector<played_part> all;
  for (const auto& part : snapshot_parts) {
    all.push_back(part);
    if (step <= large_step) std::ranges::move(parts_of(copy_kind::record, step++), std::back_inserter(all));
  }
  auto number = snapshot_parts.front().number;
  for (auto& part : all) part.number = number++;
  EXPECT_EQ(take(all).failure, "");
  EXPECT_TRUE(holds_all(copy(), 0, step));
  EXPECT_TRUE(has_snapshot(copy(), 1));
}

TEST_F(store_mirror_test, a_lower_snapshot_may_come_after_a_higher_one) {
  ASSERT_TRUE(append(*primary, 0, 10));
  for (const std::uint64_t version : {3, 6}) ASSERT_TRUE(snapshot(*primary, version));
  begin();
  send_records(0, 10);
  send(copy_kind::snapshot, 6);
  EXPECT_THAT(send(copy_kind::snapshot, 3).snapshots, ElementsAre(version_id{3}, version_id{6}));
}

TEST_F(store_mirror_test, nothing_is_dropped_with_which_a_snapshot_would_go_that_is_on_its_way) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  ASSERT_TRUE(snapshot(*primary, 1));
  begin();
  send_records(0, 3);
  auto parts = parts_of(copy_kind::snapshot, 1);
  give(parts.front()).value();
  auto floor = stamped({.kind = copy_kind::floor, .version = {2}});
  floor.number = parts[1].number;
  EXPECT_THAT(taken(floor).failure, HasSubstr("a snapshot below it is on its way"));
}

TEST_F(store_mirror_test, it_drops_what_is_below_the_floor_while_a_snapshot_above_it_is_on_its_way) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  for (const std::uint64_t version : {2, 4}) ASSERT_TRUE(snapshot(*primary, version));
  begin();
  send_records(0, large_step);
  send(copy_kind::snapshot, 2);
  auto parts = parts_of(copy_kind::snapshot, 4);
  ASSERT_GE(parts.size(), 3U);
  const auto before = taken(parts.front());
  auto floor = stamped({.kind = copy_kind::floor, .version = {2}});
  floor.number = before.taken;
  const auto dropped = taken(floor);
  EXPECT_EQ(dropped.failure, "");
  EXPECT_EQ(dropped.floor, version_id{2});
  EXPECT_EQ(dropped.restorable, (protocol::version_set{{{0}, {0}}, {{2}, {5}}}));
  for (auto at = parts.begin() + 1; at != parts.end(); ++at) {
    ++at->number; // behind the floor
    taken(*at);
  }
  EXPECT_TRUE(has_snapshot(copy(), 4));
}

TEST_F(store_mirror_test, a_history_that_is_none_is_refused) {
  begin();
  EXPECT_THAT(taken(stamped({.kind = copy_kind::rewind, .timeline = {1}})).failure,
              HasSubstr("history is none"));
}

TEST_F(store_mirror_test, it_drops_what_is_below_the_floor_but_for_the_snapshot_that_stays) {
  ASSERT_TRUE(append(*primary, 0, 12));
  for (const std::uint64_t version : {3, 6, 9}) ASSERT_TRUE(snapshot(*primary, version));
  begin();
  send_records(0, 12);
  for (const std::uint64_t version : {3, 6, 9}) send(copy_kind::snapshot, version);
  const auto after =
      taken(stamped({.kind = copy_kind::floor, .version = {9}, .has_kept = true, .kept = {3}}));
  EXPECT_EQ(after.floor, version_id{9});
  EXPECT_THAT(after.snapshots, ElementsAre(version_id{3}, version_id{9}));
}

TEST_F(store_mirror_test, what_it_took_is_there_for_the_next_start_of_the_keeper) {
  ASSERT_TRUE(append(*primary, 0, 7));
  begin();
  send_records(0, 7);
  mirror = store_mirror{copy_options()};
  EXPECT_EQ(begin({6}).end, version_id{7});
}

} // namespace
} // namespace dlrun::keeper
