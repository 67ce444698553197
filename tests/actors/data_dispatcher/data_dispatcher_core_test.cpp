#include "actors/data_dispatcher/data_dispatcher_core.hpp"

#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;
using protocol::time_point;
using std::chrono::milliseconds;
using testing::IsEmpty;

/// The dispatcher of a job with two PS shards, four slots, ten steps.
class data_dispatcher_core_test : public testing::Test {
protected:
  data_dispatcher_core_test()
      : core(config()) {}

  static data_dispatcher_core_config config() {
    data_dispatcher_core_config made;
    made.self = {2};
    made.ps_shards = 2;
    made.steps = 10;
    made.microbatches_per_step = 4;
    made.evaluates = true;
    return made;
  }
  void perform(const data_dispatcher_actions& actions) {
    for (const auto& one : sent<protocol::lease>(actions)) leases[{one.to.index}] = one.message;
  }
  data_dispatcher_actions join(std::uint32_t worker, std::uint64_t start = 1) {
    auto actions = core.on_worker_joined({worker}, {start}, now);
    perform(actions);
    return actions;
  }
  data_dispatcher_actions lose(std::uint32_t worker, std::uint64_t start = 1) {
    auto actions = core.on_worker_lost({worker}, {start}, now);
    perform(actions);
    return actions;
  }
  data_dispatcher_actions tick_after(milliseconds time) {
    now += time;
    auto actions = core.on_tick(now);
    perform(actions);
    return actions;
  }
  /// The worker follows the newest lease that was sent to it.
  data_dispatcher_actions report(std::uint32_t worker, std::uint64_t slots = 0,
                                 std::uint64_t compute_us = 0) {
    protocol::worker_status status;
    status.worker = {worker};
    status.self = {leases[{worker}].worker, 0};
    status.lease_of = leases[{worker}].dispatcher;
    status.lease_sequence = leases[{worker}].sequence;
    status.slots_computed = slots;
    status.compute_us = compute_us;
    auto actions = core.on_worker_status(status, now);
    perform(actions);
    return actions;
  }
  data_dispatcher_actions shard(std::uint32_t index, std::uint64_t applied, std::uint64_t committed,
                                std::uint64_t start = 1) {
    protocol::shard_status status;
    status.shard = {index};
    status.self = {{start}, 0};
    status.sequence = ++sequence;
    status.applied = {applied};
    status.committed = {committed};
    auto actions = core.on_shard_status(status, now);
    perform(actions);
    return actions;
  }
  protocol::slot_range slots_of(std::uint32_t worker) { return leases[{worker}].slots; }

  data_dispatcher_core core;
  std::map<worker_id, protocol::lease> leases;
  std::uint64_t sequence = 0;
  time_point now{std::chrono::hours(1)};
};

TEST_F(data_dispatcher_core_test, the_first_worker_gets_everything_and_shares_it_with_the_second) {
  join(0);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
  join(1);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 2));
  EXPECT_EQ(slots_of(1), make_slot_range(2, 4));
  EXPECT_EQ(leases[{1}].dispatcher, incarnation{2});
}

TEST_F(data_dispatcher_core_test, slots_of_a_lost_worker_are_leased_to_others_in_the_same_call) {
  join(0);
  join(1);
  const auto actions = lose(1);
  EXPECT_EQ(sent<protocol::lease>(actions).size(), 1U);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
}

TEST_F(data_dispatcher_core_test, slots_are_with_others_when_these_have_acknowledged_them) {
  join(0);
  join(1);
  report(0);
  EXPECT_THAT(told<protocol::slots_redispatched>(lose(1)), IsEmpty());
  now += milliseconds(7);
  const auto moved = told<protocol::slots_redispatched>(report(0));
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].lost, worker_id{1});
  EXPECT_EQ(moved[0].after_us, 7000U);
}

TEST_F(data_dispatcher_core_test, when_all_are_lost_the_slots_go_to_who_comes_next) {
  join(0);
  lose(0);
  EXPECT_THAT(told<protocol::slots_redispatched>(tick_after(milliseconds(50))), IsEmpty());
  join(0, 2);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
  EXPECT_EQ(told<protocol::slots_redispatched>(report(0)).size(), 1U);
}

TEST_F(data_dispatcher_core_test, the_loss_of_an_older_start_is_no_loss) {
  join(0, 2);
  EXPECT_THAT(lose(0, 1), IsEmpty());
  EXPECT_THAT(lose(7), IsEmpty());
  EXPECT_THAT(join(0, 1), IsEmpty());
}

TEST_F(data_dispatcher_core_test, a_lease_is_repeated_until_it_is_acknowledged) {
  join(0);
  EXPECT_THAT(sent<protocol::lease>(tick_after(milliseconds(100))), IsEmpty());
  const auto again = tick_after(milliseconds(150));
  EXPECT_EQ(sent<protocol::lease>(again).size(), 1U);
  EXPECT_THAT(only<decision_made>(again), IsEmpty()) << "said once";
  report(0);
  EXPECT_THAT(sent<protocol::lease>(tick_after(milliseconds(250))), IsEmpty());
}

TEST_F(data_dispatcher_core_test, an_acknowledgement_of_another_dispatchers_lease_does_not_count) {
  join(0);
  leases[{0}].dispatcher = {1}; // an older one, with the same number
  report(0);
  leases.clear();
  EXPECT_EQ(sent<protocol::lease>(tick_after(milliseconds(250))).size(), 1U);
}

TEST_F(data_dispatcher_core_test, a_silent_worker_loses_its_slots_and_gets_them_back) {
  join(0);
  join(1);
  for (int i = 0; i < 12; ++i) {
    report(0);
    tick_after(milliseconds(100));
  }
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
  EXPECT_EQ(slots_of(1), make_slot_range(2, 4)) << "it keeps what it has";
  report(1);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 2));
}

TEST_F(data_dispatcher_core_test, after_a_pause_of_its_own_nobody_is_silent_before_he_could_be_heard) {
  join(0);
  join(1);
  tick_after(milliseconds(100));
  tick_after(milliseconds(8000));
  EXPECT_EQ(slots_of(0), make_slot_range(0, 2));
  for (int i = 0; i < 9; ++i) tick_after(milliseconds(100));
  EXPECT_EQ(slots_of(0), make_slot_range(0, 2));
}

TEST_F(data_dispatcher_core_test, when_nobody_is_heard_the_leases_stay) {
  join(0);
  join(1);
  for (int i = 0; i < 20; ++i) tick_after(milliseconds(100));
  EXPECT_EQ(slots_of(0), make_slot_range(0, 2));
  EXPECT_EQ(slots_of(1), make_slot_range(2, 4));
}

TEST_F(data_dispatcher_core_test, a_slow_worker_gets_fewer_slots) {
  join(0);
  join(1);
  report(0, 100, 100'000);
  report(1, 100, 300'000);
  tick_after(milliseconds(100));
  EXPECT_EQ(slots_of(0), make_slot_range(0, 3));
}

TEST_F(data_dispatcher_core_test, training_is_finished_once_when_all_is_applied_and_committed) {
  join(0);
  EXPECT_THAT(told<protocol::training_finished>(shard(0, 10, 10)), IsEmpty());
  EXPECT_THAT(told<protocol::training_finished>(shard(1, 10, 9)), IsEmpty());
  EXPECT_EQ(told<protocol::training_finished>(shard(1, 10, 10)).size(), 1U);
  EXPECT_THAT(told<protocol::training_finished>(shard(1, 10, 10)), IsEmpty());
}

TEST_F(data_dispatcher_core_test, one_worker_evaluates_and_another_when_it_is_lost) {
  join(0);
  join(1);
  shard(0, 10, 10);
  auto orders = sent<protocol::evaluate>(shard(1, 10, 10));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].to, protocol::worker_role({0}));
  EXPECT_EQ(orders[0].message.version, version_id{10});
  orders = sent<protocol::evaluate>(lose(0));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].to, protocol::worker_role({1}));
  EXPECT_EQ(sent<protocol::evaluate>(tick_after(milliseconds(250))).size(), 1U)
      << "repeated until it is answered";
}

TEST_F(data_dispatcher_core_test,
       a_result_of_another_version_or_timeline_is_ignored_and_the_right_one_given_once) {
  join(0);
  protocol::evaluated result;
  result.version = {10};
  EXPECT_THAT(core.on_evaluated(result, now), IsEmpty()) << "not asked for yet";
  shard(0, 10, 10);
  shard(1, 10, 10);
  result.version = {9};
  EXPECT_THAT(core.on_evaluated(result, now), IsEmpty());
  result.version = {10};
  result.timeline = {1};
  EXPECT_THAT(core.on_evaluated(result, now), IsEmpty());
  result.timeline = {0};
  EXPECT_EQ(told<protocol::evaluated>(core.on_evaluated(result, now)).size(), 1U);
  EXPECT_THAT(core.on_evaluated(result, now), IsEmpty());
  EXPECT_THAT(sent<protocol::evaluate>(tick_after(milliseconds(500))), IsEmpty());
}

TEST_F(data_dispatcher_core_test, a_result_with_another_number_of_sums_is_of_no_worker_of_this_job) {
  join(0);
  shard(0, 10, 10);
  shard(1, 10, 10);
  protocol::evaluated result;
  result.version = {10};
  result.metric_bits = {7};
  EXPECT_THAT(core.on_evaluated(result, now), IsEmpty());
}

TEST_F(data_dispatcher_core_test, a_divergence_is_told_behind_what_is_kept_on_its_timeline) {
  protocol::divergence what;
  what.text = "the loss is nan";
  shard(0, 5, 5);
  EXPECT_THAT(core.on_divergence(what), IsEmpty()) << "of the other PS shard nothing is known";
  shard(1, 4, 4);
  const auto actions = core.on_divergence(what);
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(told<protocol::training_progress>({actions[0]}).at(0).shards.size(), 2U);
  EXPECT_EQ(told<protocol::divergence>({actions[1]}).at(0).text, "the loss is nan");
  what.timeline = {1};
  EXPECT_THAT(core.on_divergence(what), IsEmpty()) << "everybody is elsewhere";
}

TEST_F(data_dispatcher_core_test, the_progress_has_what_the_newest_start_of_each_role_has_done) {
  join(0);
  report(0, 7, 1000);
  join(0, 2);
  report(0, 3, 1000);
  leases[{0}].worker = {1};
  report(0, 9, 1000); // late
  shard(1, 4, 4);
  const auto progress = core.progress();
  ASSERT_EQ(progress.tallies.size(), 2U);
  EXPECT_EQ(progress.tallies[0].incarnation, incarnation{2});
  EXPECT_EQ(progress.tallies[0].slots_computed, 3U);
  EXPECT_EQ(progress.tallies[1].role, protocol::ps_shard_role({1}));
  EXPECT_EQ(progress.shards.at(0).applied, version_id{4});
}

// ---- what the operator changes (R16a)

class changed_job_test : public data_dispatcher_core_test {
protected:
  changed_job_test() {
    auto durable = config();
    durable.durability = protocol::durability::every_step;
    durable.sizes.slots_of = [](step_id) { return 4U; };
    durable.sizes.records_of = [](step_id, slot_id) { return 4U; };
    core = data_dispatcher_core(durable);
  }
  /// PS shard `index` has logged up to version 5.
  data_dispatcher_actions logged(std::uint32_t index, const protocol::history& history) {
    protocol::shard_status status;
    status.shard = {index};
    status.self = {{1}, 0};
    status.sequence = ++sequence;
    status.timeline = newest_timeline(history);
    status.applied = status.committed = {5};
    status.durable.history = history;
    status.durable.restorable = {{{0}, {5}}};
    status.durable.serves_previous = true;
    auto actions = core.on_shard_status(status, now);
    perform(actions);
    return actions;
  }

  const wanted_change faster{{5}, 1, {}};
  const protocol::history changed = extended(protocol::first_history(), {{1}, {5}, 1, {}});
};

TEST_F(changed_job_test, everybody_goes_back_for_a_change_before_anything_else_is_decided) {
  EXPECT_THAT(core.on_wanted_change(faster, now), IsEmpty()) << "nobody has said where it stands";
  logged(0, protocol::first_history());
  const auto pins = sent<protocol::pin>(logged(1, protocol::first_history()));
  ASSERT_EQ(pins.size(), 2U);
  EXPECT_EQ(pins[0].message.version, version_id{5});
}

TEST_F(changed_job_test, nothing_is_leased_before_every_ps_shard_has_the_change) {
  core.on_wanted_change(faster, now);
  EXPECT_THAT(sent<protocol::lease>(join(0)), IsEmpty());
  logged(0, protocol::first_history());
  logged(1, protocol::first_history());
  for (int i = 0; i < 5; ++i) EXPECT_THAT(sent<protocol::lease>(tick_after(milliseconds(100))), IsEmpty());
  logged(0, changed);
  EXPECT_THAT(sent<protocol::lease>(tick_after(milliseconds(100))), IsEmpty()) << "one is still behind";
  logged(1, changed);
  const auto actions = tick_after(milliseconds(10));
  EXPECT_EQ(sent<protocol::lease>(actions).size(), 1U);
  EXPECT_EQ(only<decision_made>(actions).at(0).event, "lease") << "with its reason, as if it were new";
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
}

TEST_F(changed_job_test, a_ps_shard_that_lost_its_disk_does_not_have_the_change) {
  core.on_wanted_change(faster, now);
  logged(0, changed);
  logged(1, changed);
  join(0);
  EXPECT_EQ(slots_of(0), make_slot_range(0, 4));
  logged(1, protocol::first_history());
  EXPECT_THAT(sent<protocol::lease>(join(1)), IsEmpty());
  logged(1, changed);
  EXPECT_EQ(sent<protocol::lease>(tick_after(milliseconds(10))).size(), 2U);
}

TEST_F(changed_job_test, leases_of_a_job_that_nobody_changes_wait_for_nothing) {
  EXPECT_EQ(sent<protocol::lease>(join(0)).size(), 1U);
}

} // namespace
} // namespace dlrun::data_dispatcher
