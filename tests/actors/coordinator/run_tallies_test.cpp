#include "actors/coordinator/run_tallies.hpp"

#include "tests/actors/journal_writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::role_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::written;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr protocol::time_point first_root{seconds(100)};
constexpr protocol::time_point second_root{seconds(5000)};

/// Worker `index` died so long after the start of its root.
recovery_record loss(std::uint32_t index, protocol::time_point noticed) {
  recovery_record record;
  record.role = {role_kind::worker, index};
  record.lost = {1};
  record.replacement = {2};
  record.cause = "killed by signal 9 (SIGKILL)";
  record.noticed = noticed;
  record.detected = milliseconds(40);
  return record;
}

protocol::start_tally worker_tally(std::uint32_t index, std::uint64_t incarnation, std::uint64_t slots) {
  return {.role = {role_kind::worker, index}, .incarnation = {incarnation}, .slots_computed = slots};
}

std::vector<std::string> keys_of(const std::vector<persistence::journal_write>& writes) {
  std::vector<std::string> keys;
  for (const auto& write : writes) keys.push_back(write.key);
  return keys;
}

TEST(run_tallies, of_a_new_run_has_nothing_to_add) {
  const run_tallies tallies{{}, first_root, {1}};
  EXPECT_THAT(tallies.earlier().recoveries, IsEmpty());
  EXPECT_EQ(tallies.earlier().wall_seconds, 0);
  EXPECT_THAT(tallies.rewinds(), IsEmpty());
  EXPECT_EQ(tallies.totals().slots_computed, 0U);
}

TEST(run_tallies, a_loss_is_written_when_it_is_noticed_and_when_more_is_known_of_it) {
  run_tallies tallies{{}, first_root, {1}};
  auto lost = loss(3, first_root + seconds(2));
  EXPECT_THAT(keys_of(tallies.changes({lost}, first_root + seconds(2))).front(), StartsWith("recovery/"));
  EXPECT_THAT(tallies.changes({lost}, first_root + milliseconds(2100)), IsEmpty());
  lost.redispatched = milliseconds(4);
  lost.resumed = milliseconds(130);
  lost.steps_redone = 12;
  const auto entries = written(tallies.changes({lost}, first_root + milliseconds(2200)));
  const run_tallies next{entries, second_root, {2}};
  EXPECT_TRUE(next.knows({.role = {role_kind::worker, 3}, .self = {{1}, 7}, .cause = ""}));
  EXPECT_FALSE(next.knows({.role = {role_kind::worker, 3}, .self = {{2}, 7}, .cause = ""}));
  EXPECT_FALSE(next.knows({.role = {role_kind::ps_shard, 3}, .self = {{1}, 7}, .cause = ""}));
  ASSERT_THAT(next.earlier().recoveries, SizeIs(1));
  const auto& kept = next.earlier().recoveries[0];
  EXPECT_EQ(kept.role, "worker");
  EXPECT_EQ(kept.index, 3U);
  EXPECT_EQ(kept.cause, lost.cause);
  EXPECT_EQ(kept.incarnation, 2U);
  EXPECT_EQ(kept.at_seconds, 2);
  EXPECT_EQ(kept.detected_ms, 40);
  EXPECT_EQ(kept.redispatched_ms, 4);
  EXPECT_EQ(kept.resumed_ms, 130);
  EXPECT_EQ(kept.steps_redone, 12U);
}

TEST(run_tallies, the_time_is_written_every_second_and_not_more_often) {
  run_tallies tallies{{}, first_root, {1}};
  EXPECT_THAT(keys_of(tallies.changes({}, first_root)), ElementsAre(StartsWith("run/")));
  EXPECT_THAT(tallies.changes({}, first_root + milliseconds(900)), IsEmpty());
  EXPECT_THAT(tallies.changes({}, first_root + milliseconds(1000)), SizeIs(1));
}

TEST(run_tallies, at_the_end_nothing_waits_for_its_second) {
  run_tallies tallies{{}, first_root, {1}};
  tallies.add_tallies({worker_tally(0, 1, 10)});
  auto entries = written(tallies.changes({}, first_root + seconds(1)));
  tallies.add_tallies({worker_tally(0, 1, 12)});
  entries = written(tallies.last_changes({}, first_root + milliseconds(1900)), entries);
  const run_tallies next{entries, second_root, {2}};
  EXPECT_EQ(next.totals().slots_computed, 12U);
  EXPECT_DOUBLE_EQ(next.earlier().wall_seconds, 1.9);
}

TEST(run_tallies, losses_and_time_of_all_starts_of_a_run_add_up) {
  run_tallies first{{}, first_root, {1}};
  auto entries = written(first.changes({loss(0, first_root + seconds(2))}, first_root + seconds(10)));
  run_tallies second{entries, second_root, {2}};
  EXPECT_EQ(second.earlier().wall_seconds, 10);
  entries = written(second.changes({loss(1, second_root + seconds(3)), loss(2, second_root + seconds(4))},
                                   second_root + seconds(20)),
                    entries);
  const run_tallies third{entries, second_root + seconds(500), {3}};
  EXPECT_EQ(third.earlier().wall_seconds, 30);
  std::vector<double> times;
  for (const auto& one : third.earlier().recoveries) times.push_back(one.at_seconds);
  EXPECT_THAT(times, ElementsAre(2, 13, 14)) << "since the start of the run";
}

TEST(run_tallies, the_time_of_a_root_counts_once_however_many_coordinators_it_had) {
  run_tallies first{{}, first_root, {1}};
  auto entries = written(first.changes({}, first_root + seconds(10)));
  run_tallies again{entries, first_root, {2}};
  EXPECT_EQ(again.earlier().wall_seconds, 0) << "it is of this root";
  entries = written(again.changes({}, first_root + seconds(25)), entries);
  EXPECT_EQ((run_tallies{entries, second_root, {3}}.earlier().wall_seconds), 25);
}

TEST(run_tallies, coordinators_of_one_root_are_told_by_its_number_whatever_the_clocks_of_their_hosts) {
  constexpr std::uint64_t root = 77;
  run_tallies first{{}, first_root, {1}, root};
  auto entries = written(first.changes({}, first_root + seconds(10)));
  run_tallies elsewhere{entries, second_root, {2}, root};
  EXPECT_EQ(elsewhere.earlier().wall_seconds, 0);
  entries = written(elsewhere.changes({}, second_root + seconds(25)), entries);
  EXPECT_EQ((run_tallies{entries, first_root, {3}, root + 1}.earlier().wall_seconds), 25);
}

TEST(run_tallies, of_each_start_of_a_role_the_latest_word_counts) {
  run_tallies tallies{{}, first_root, {1}};
  tallies.add_tallies({worker_tally(0, 1, 10), worker_tally(1, 1, 5)});
  tallies.add_tallies({worker_tally(0, 1, 30)});
  tallies.add_tallies({worker_tally(0, 4, 7)}); // its replacement
  tallies.add_tallies({{.role = {role_kind::ps_shard, 0},
                        .incarnation = {1},
                        .bytes_logged = 1000,
                        .bytes_snapshotted = 200}});
  EXPECT_EQ(tallies.totals().slots_computed, 42U);
  EXPECT_EQ(tallies.totals().bytes_logged, 1000U);
  EXPECT_EQ(tallies.totals().bytes_snapshotted, 200U);
}

/// PS shards wait for their copies at the same time.
TEST(run_tallies, of_the_time_that_steps_waited_for_copies_the_longest_of_a_ps_shard_counts) {
  const auto waited = [](std::uint32_t shard, std::uint64_t start, std::uint64_t us) {
    return protocol::start_tally{.role = {role_kind::ps_shard, shard},
                                 .incarnation = {start},
                                 .bytes_copied = 1000,
                                 .copy_waited_us = us};
  };
  run_tallies tallies{{}, first_root, {1}};
  tallies.add_tallies({waited(0, 1, 300), waited(1, 1, 500), waited(0, 4, 400)});
  const run_tallies read{written(tallies.changes({}, first_root)), first_root, {2}};
  for (const auto& one : {tallies, read}) {
    EXPECT_EQ(one.totals().copy_waited_us, 700U);
    EXPECT_EQ(one.totals().bytes_copied, 3000U);
  }
}

/// A worker outlives the coordinator, and tells the next one of all that it ever computed.
TEST(run_tallies, what_a_start_did_under_two_coordinators_counts_once) {
  run_tallies first{{}, first_root, {1}};
  first.add_tallies({worker_tally(0, 1, 10), worker_tally(12, 1, 5)});
  const auto entries = written(first.changes({}, first_root + seconds(10)));
  run_tallies second{entries, first_root, {2}};
  EXPECT_EQ(second.totals().slots_computed, 15U);
  second.add_tallies({worker_tally(0, 1, 25)});
  EXPECT_EQ(second.totals().slots_computed, 30U);
}

TEST(run_tallies, tallies_are_written_with_the_time_and_only_those_that_changed) {
  run_tallies tallies{{}, first_root, {1}};
  tallies.add_tallies({worker_tally(0, 1, 10), worker_tally(1, 1, 5)});
  EXPECT_THAT(tallies.changes({}, first_root + seconds(1)), SizeIs(3));
  tallies.add_tallies({worker_tally(0, 1, 10), worker_tally(1, 1, 6)});
  EXPECT_THAT(tallies.changes({}, first_root + milliseconds(1500)), IsEmpty());
  EXPECT_THAT(tallies.changes({}, first_root + seconds(2)), SizeIs(2));
}

TEST(run_tallies, rewinds_are_written_at_once_and_come_back_in_their_order) {
  run_tallies first{{}, first_root, {1}};
  auto entries = written(first.changes({}, first_root + seconds(10)));
  first.add_rewind({{12}, {40}, 3, "the gradients of step 42 are lost"}, first_root + seconds(10));
  entries = written(first.changes({}, first_root + seconds(10)), entries);
  run_tallies second{entries, second_root, {2}};
  second.add_rewind({{113}, {30}, 20, "slot 1 of step 30 is left out"}, second_root + seconds(5));
  ASSERT_THAT(second.rewinds(), SizeIs(2));
  entries = written(second.changes({}, second_root + seconds(5)), entries);
  const auto rewinds = run_tallies{entries, second_root + seconds(900), {3}}.rewinds();
  ASSERT_THAT(rewinds, SizeIs(2));
  EXPECT_EQ(rewinds[0].timeline, 12U);
  EXPECT_EQ(rewinds[0].version, 40U);
  EXPECT_EQ(rewinds[0].steps_redone, 3U);
  EXPECT_EQ(rewinds[0].at_seconds, 10);
  EXPECT_EQ(rewinds[0].reason, "the gradients of step 42 are lost");
  EXPECT_EQ(rewinds[1].timeline, 113U);
  EXPECT_EQ(rewinds[1].at_seconds, 15) << "since the start of the run";
}

TEST(run_tallies, an_older_journal_is_written_with_what_says_so_and_comes_back) {
  run_tallies first{{}, first_root, {2}};
  auto entries = written(first.changes({}, first_root + seconds(10)));
  const auto loss = first.add_journal_loss({role_kind::worker, 1}, {7}, {4}, first_root + seconds(10));
  EXPECT_THAT(first.journal_losses(), SizeIs(1));
  entries = written({loss}, entries);
  EXPECT_THAT(first.changes({}, first_root + seconds(10)), IsEmpty());
  run_tallies second{entries, second_root, {3}};
  entries = written({second.add_journal_loss({role_kind::ps_shard, 0}, {20}, {3}, second_root + seconds(5))},
                    entries);
  const auto losses = run_tallies{entries, second_root + seconds(900), {4}}.journal_losses();
  ASSERT_THAT(losses, SizeIs(2));
  EXPECT_EQ(losses[0].role, "worker");
  EXPECT_EQ(losses[0].index, 1U);
  EXPECT_EQ(losses[0].incarnation, 7U);
  EXPECT_EQ(losses[0].known, 4U);
  EXPECT_EQ(losses[0].at_seconds, 10);
  EXPECT_EQ(losses[1].role, "ps_shard");
  EXPECT_EQ(losses[1].at_seconds, 15) << "since the start of the run";
}

/// Nothing but the report depends on it.
TEST(run_tallies, what_cannot_be_read_is_left_out) {
  const run_tallies tallies{{{"recovery/000000000001/000000", "\xff"},
                             {"rewind/000000000001", "\xff"},
                             {"older/00000000000000000001", "\xff"},
                             {"older/x", ""},
                             {"run/000000000001", "\xff"},
                             {"tally/3/0/1", "\xff"},
                             {"tally/", ""},
                             {"tally/x/0/1", ""},
                             {"role/worker 0", "\xff"}},
                            first_root,
                            {2}};
  EXPECT_THAT(tallies.earlier().recoveries, IsEmpty());
  EXPECT_EQ(tallies.earlier().wall_seconds, 0);
  EXPECT_THAT(tallies.rewinds(), IsEmpty());
  EXPECT_EQ(tallies.totals().slots_computed, 0U);
}

} // namespace
} // namespace dlrun::coordinator
