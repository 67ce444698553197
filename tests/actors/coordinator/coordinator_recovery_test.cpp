/// coordinator_core where it may die: fences, journal, what runs, the end.
#include "tests/actors/coordinator/journaling_test.hpp"
#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using protocol::job_outcome;
using protocol::ps_shard_role;
using protocol::role_name;
using protocol::worker_role;
using std::chrono::milliseconds;
using test::only;
using testing::IsEmpty;
using testing::SizeIs;

constexpr role_name coordinator_role{protocol::role_kind::coordinator, 0};

class coordinator_recovery_test : public journaling_test {
protected:
  coordinator_core_config config(std::uint64_t self) {
    auto made = journaling_test::config(self);
    made.token = 500 + self;
    made.evaluates = true;
    return made;
  }
  fence start(coordinator_core& core, role_name role) {
    const auto self = granted.at(role).front();
    perform(core, core.on_role_started({role, self, 100}));
    return self;
  }
  bool join(coordinator_core& core, role_name role, fence self) {
    for (const auto& action :
         perform(core, core.on_join({role, self, 100, {"somewhere", self.incarnation.value, ""}, "A"})))
      if (const auto* answer = std::get_if<answer_join>(&action)) return answer->reply.accepted;
    return false;
  }

  coordinator_core core{config(1)};
};

TEST_F(coordinator_recovery_test, nothing_can_start_before_its_fence_is_in_the_journal) {
  journal_answers = false;
  const auto actions = perform(core, core.on_agent());
  const auto orders = only<journal_fences>(actions);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_THAT(orders[0].roles, SizeIs(3)) << "its own role too";
  EXPECT_THAT(granted, IsEmpty());
  perform(core, core.on_fences_journaled(orders[0].id));
  EXPECT_THAT(granted, SizeIs(3));
  EXPECT_GT(granted.at(coordinator_role).front().incarnation, incarnation{1});
  EXPECT_THAT(granted.at(worker_role({0})), SizeIs(3));
  EXPECT_THAT(granted.at(coordinator_role), SizeIs(10))
      << "it may die that often before one of them brings more";
}

TEST_F(coordinator_recovery_test, its_successor_takes_over_what_runs_and_restarts_nobody) {
  perform(core, core.on_agent());
  const auto worker = start(core, worker_role({0}));
  const auto shard = start(core, ps_shard_role({0}));
  coordinator_core next(config(2), journal);
  granted.clear();
  perform(next, next.on_agent());
  EXPECT_TRUE(join(next, worker_role({0}), worker)) << "also before the agent tells of it";
  perform(next, next.on_role_started({ps_shard_role({0}), shard, 100}));
  EXPECT_TRUE(join(next, ps_shard_role({0}), shard));
  for (const auto& one : next.directory().entries)
    EXPECT_TRUE(one.role != worker_role({0}) || one.incarnation == worker.incarnation);
  EXPECT_THAT(next.starts().available_workers(), SizeIs(1));
  EXPECT_THAT(next.starts().available_ps_shards(), SizeIs(1));
  EXPECT_GT(granted.at(worker_role({0})).front().incarnation, worker.incarnation);
}

/// R35: a root had given its host up, and the next one finds it there.
TEST_F(coordinator_recovery_test, what_is_over_and_runs_all_the_same_is_to_be_killed) {
  perform(core, core.on_agent());
  const auto shard = start(core, ps_shard_role({0}));
  EXPECT_THAT(only<send_start_over>(perform(core, core.on_role_started({ps_shard_role({0}), shard, 100}))),
              IsEmpty());
  perform(core, core.on_role_exited({ps_shard_role({0}), shard, "its host was given up"}, {}));
  const auto told =
      only<send_start_over>(perform(core, core.on_role_started({ps_shard_role({0}), shard, 100})));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].message.role, ps_shard_role({0}));
  EXPECT_EQ(told[0].message.self, shard);
  EXPECT_THAT(only<send_start_over>(perform(core, core.on_tick({}))), SizeIs(1))
      << "until another start is there";
  start(core, ps_shard_role({0}));
  EXPECT_THAT(
      only<send_start_over>(perform(core, core.on_tick(protocol::time_point{} + milliseconds(10'000)))),
      IsEmpty());
}

TEST_F(coordinator_recovery_test, its_successor_counts_its_loss_once) {
  coordinator_core next(config(2), journal);
  protocol::role_exited exited{coordinator_role, {{1}, 501}, "killed by signal 9 (SIGKILL)", 2000, true};
  exited.age_us = 40'000;
  perform(next, next.on_role_exited(exited, now));
  perform(next, next.on_role_exited(exited, now + milliseconds(10)));
  ASSERT_THAT(next.recoveries().all(), SizeIs(1));
  EXPECT_EQ(next.recoveries().all()[0].replacement, incarnation{2});
  EXPECT_EQ(next.recoveries().all()[0].resumed, milliseconds(40));
}

TEST_F(coordinator_recovery_test, a_loss_that_its_predecessor_was_told_of_counts_for_the_report_alone) {
  perform(core, core.on_agent());
  const auto first = start(core, worker_role({0}));
  start(core, worker_role({0}));
  coordinator_core next(config(3), journal);
  protocol::role_exited before{coordinator_role, {{1}, 501}, "killed by signal 9 (SIGKILL)", 2000, true};
  before.again = true;
  protocol::role_exited worker{worker_role({0}), first, "killed by signal 9 (SIGKILL)", 2000, true};
  worker.again = true;
  for (const auto& exited : {before, worker, before})
    EXPECT_THAT(next.on_role_exited(exited, now), testing::IsEmpty());
  ASSERT_THAT(next.recoveries().all(), SizeIs(2));
  EXPECT_EQ(next.recoveries().all()[0].lost, incarnation{1});
  EXPECT_EQ(next.recoveries().all()[0].replacement, incarnation{3});
  EXPECT_EQ(next.recoveries().all()[1].role, worker_role({0}));
}

TEST_F(coordinator_recovery_test, an_end_that_was_lost_with_the_connection_is_news_when_it_is_told_again) {
  perform(core, core.on_agent());
  const auto role = ps_shard_role({0});
  const auto told_again = [&](const fence& self) {
    protocol::role_exited exited{role, self, "killed by signal 9 (SIGKILL)", 2000, true};
    exited.again = true;
    return exited;
  };
  const auto fences = granted.at(role);
  start(core, role);
  join(core, role, fences.at(0));
  // The connection breaks; the agent uses up all fences, and tells of their ends in order.
  EXPECT_THAT(only<protocol::ps_shard_gone>(perform(core, core.on_role_exited(told_again(fences[0]), now))),
              SizeIs(1));
  for (const auto& self : fences) perform(core, core.on_role_exited(told_again(self), now));
  EXPECT_GT(granted.at(role).front().incarnation, fences.back().incarnation) << "the next start has a fence";
  const auto known = core.recoveries().all().size();
  perform(core, core.on_role_exited(told_again(fences.at(0)), now));
  EXPECT_THAT(core.recoveries().all(), SizeIs(known)) << "which is no news any more";
}

TEST_F(coordinator_recovery_test, an_end_that_is_told_after_the_next_start_has_joined_is_a_loss_and_a_crash) {
  perform(core, core.on_agent());
  const auto role = worker_role({0});
  const auto crash = [&](const fence& self, protocol::duration age) {
    protocol::role_exited exited{role, self, "killed by signal 11", 1, true};
    exited.has_progress = true;
    exited.progress = {{{4}, {1}}};
    exited.age_us = static_cast<std::uint64_t>(age / std::chrono::microseconds(1));
    return exited;
  };
  const auto fences = granted.at(role);
  ASSERT_THAT(fences, SizeIs(testing::Ge(3)));
  for (const auto& self : {fences[0], fences[1], fences[2]}) ASSERT_TRUE(join(core, role, self));
  perform(core, core.on_role_exited(crash(fences[0], milliseconds(30)), now));
  core.recoveries().on_resumed(role, fences[2].incarnation, now + milliseconds(20));
  const auto late =
      perform(core, core.on_role_exited(crash(fences[1], milliseconds(30)), now + milliseconds(25)));
  EXPECT_THAT(only<slot_suspected>(late), SizeIs(1)) << "R18: the second crash in that slot";
  perform(core, core.on_role_exited(crash(fences[1], milliseconds(30)), now + milliseconds(25)));
  ASSERT_THAT(core.recoveries().all(), SizeIs(2));
  for (const auto& one : core.recoveries().all()) EXPECT_EQ(one.replacement, fences[2].incarnation);
  EXPECT_EQ(core.recoveries().all()[0].resumed, milliseconds(50));
  EXPECT_EQ(core.recoveries().all()[1].resumed, milliseconds(25));
  EXPECT_EQ(core.starts().of(role).running, true) << "the newest goes on";
}

TEST_F(coordinator_recovery_test, the_loss_of_a_shard_is_told_to_the_dispatcher_and_ends_nothing) {
  perform(core, core.on_agent());
  const auto shard = start(core, ps_shard_role({0}));
  join(core, ps_shard_role({0}), shard);
  const auto actions =
      perform(core, core.on_role_exited({ps_shard_role({0}), shard, "killed", 1, true}, now));
  EXPECT_THAT(only<protocol::ps_shard_gone>(actions), SizeIs(1));
  EXPECT_THAT(only<finish_job>(actions), IsEmpty());
  const auto newer = start(core, ps_shard_role({0}));
  join(core, ps_shard_role({0}), newer);
  core.recoveries().on_resumed(ps_shard_role({0}), newer.incarnation, now + milliseconds(30));
  EXPECT_EQ(core.recoveries().all().at(0).resumed, milliseconds(30));
}

TEST_F(coordinator_recovery_test, dispatchers_of_a_successor_are_newer_than_all_of_its_own) {
  for (int i = 0; i < 5; ++i) core.on_dispatcher_started({});
  coordinator_core next(config(2), journal);
  next.on_dispatcher_started({});
  EXPECT_GT(next.dispatcher_incarnation(), core.dispatcher_incarnation());
}

TEST_F(coordinator_recovery_test,
       the_records_of_a_slot_that_ends_its_worker_twice_are_tried_and_what_kills_is_parked) {
  perform(core, core.on_agent());
  const auto crash = [&](bool own_doing, protocol::slot_progress where) {
    protocol::role_exited exited{worker_role({0}), start(core, worker_role({0})), "killed by signal 11", 1,
                                 true};
    exited.has_progress = own_doing;
    exited.progress = where;
    return perform(core, core.on_role_exited(exited, now));
  };
  const protocol::slot_progress in_slot{{{4}, {1}}};
  crash(true, in_slot);
  crash(false, in_slot);
  EXPECT_THAT(core.directory().suspects, IsEmpty()) << "somebody killed it";
  const auto second = crash(true, in_slot);
  EXPECT_THAT(only<slot_suspected>(second), SizeIs(1));
  EXPECT_EQ(only<send_directory>(second).at(0).directory.suspects,
            (std::vector<protocol::suspect_slot>{{{4}, {1}}}));
  const auto poisoned = only<protocol::poisoned_slot>(crash(true, {{{4}, {1}, 17}, true}));
  ASSERT_THAT(poisoned, SizeIs(1));
  EXPECT_EQ(poisoned[0].what, (protocol::parked_slot{{4}, {1}, 17}));
  EXPECT_THAT(only<protocol::poisoned_slot>(core.on_dispatcher_started({})), SizeIs(1))
      << "a new one must know";
}

TEST_F(coordinator_recovery_test, a_successor_counts_the_deaths_of_which_the_agent_tells_it_again) {
  const auto told = [&](std::uint64_t incarnation, protocol::slot_progress where) {
    protocol::role_exited exited{worker_role({0}), {{incarnation}, 1}, "killed by signal 11", 1, true};
    exited.has_progress = exited.again = true;
    exited.progress = where;
    return core.on_role_exited(exited, now);
  };
  told(1, {{{4}, {1}}});
  EXPECT_THAT(only<send_directory>(told(1, {{{4}, {1}}})), IsEmpty()) << "the same start";
  EXPECT_THAT(only<send_directory>(told(2, {{{4}, {1}}})), SizeIs(1));
  EXPECT_THAT(only<protocol::poisoned_slot>(told(3, {{{4}, {1}, 2}, true})), SizeIs(1));
}

// ---- the end

TEST_F(coordinator_recovery_test, the_report_comes_first_then_the_journal_and_then_the_agent) {
  perform(core, core.on_agent());
  protocol::evaluated result;
  result.version = {10};
  core.ending().on_evaluated(result);
  perform(core, core.ending().on_training_finished({3}, {10}));
  const auto closing =
      only<protocol::close_training>(core.ending().on_digests({0}, {0, std::string(32, 'x')}));
  ASSERT_THAT(closing, SizeIs(1));
  EXPECT_THAT(core.ending().on_training_closed({2}), IsEmpty());
  const auto finished = only<finish_job>(core.ending().on_training_closed({3}));
  ASSERT_THAT(finished, SizeIs(1));
  const auto written = core.ending().on_report_written(finished[0].ended);
  EXPECT_THAT(only<journal_end>(written), SizeIs(1));
  EXPECT_THAT(only<announce_end>(written), IsEmpty());
  EXPECT_THAT(only<announce_end>(core.on_agent()), IsEmpty());
  EXPECT_THAT(only<announce_end>(core.ending().on_end_journaled()), SizeIs(1));
  EXPECT_THAT(only<announce_end>(core.on_agent()), SizeIs(1)) << "it was lost on the way";
}

TEST_F(coordinator_recovery_test, a_job_that_is_journaled_as_done_is_over) {
  journal.ended = protocol::job_ended{job_outcome::completed, ""};
  coordinator_core next(config(2), journal);
  EXPECT_FALSE(join(next, worker_role({0}), {{1}, 1}));
  EXPECT_THAT(only<announce_end>(next.on_agent()), SizeIs(1));
  EXPECT_THAT(next.ending().on_training_finished({0}, {10}), IsEmpty());
}

TEST_F(coordinator_recovery_test, a_job_that_was_stopped_can_be_resumed) {
  perform(core, core.on_agent());
  const auto finished = only<finish_job>(core.ending().on_stop({job_outcome::interrupted, "Ctrl-C"}));
  const auto written = core.ending().on_report_written(finished.at(0).ended);
  EXPECT_THAT(only<journal_end>(written), IsEmpty());
  EXPECT_THAT(only<announce_end>(written), SizeIs(1));
}

TEST_F(coordinator_recovery_test, without_its_journal_it_believes_what_runs_and_begins_far_beyond) {
  journaled_job lost;
  lost.lost = true;
  lost.highest_found = {9};
  coordinator_core next(config(5), lost);
  perform(next, next.on_role_started({worker_role({0}), {{7}, 1234}, 100}));
  EXPECT_TRUE(join(next, worker_role({0}), {{7}, 1234}));
  EXPECT_FALSE(join(next, worker_role({0}), {{6}, 1234})) << "an older one";
  perform(next, next.on_agent());
  EXPECT_GT(granted.at(worker_role({0})).front().incarnation.value, std::uint64_t{1} << 32);
}

/// A journal of which older data was put back, while what was issued since runs.
class older_journal_test : public coordinator_recovery_test {
protected:
  older_journal_test() {
    perform(core, core.on_agent());
    older = journal;
    for (int starts = 0; starts < 3; ++starts) worker = start(core, worker_role({0}));
    granted.clear();
  }
  /// How the next coordinator goes on once it has heard of what it does not know.
  void expect_begins_anew(coordinator_core& next, const coordinator_actions& actions) {
    EXPECT_THAT(only<journal_is_older>(actions), SizeIs(1));
    const auto orders = only<journal_fences>(actions);
    ASSERT_THAT(orders, SizeIs(1));
    EXPECT_TRUE(orders[0].older) << "in the same write";
    EXPECT_THAT(orders[0].roles, SizeIs(3));
    EXPECT_THAT(only<restart_dispatcher>(actions), SizeIs(1));
    for (const auto& [role, fences] : granted)
      EXPECT_GT(fences.front().incarnation.value, std::uint64_t{1} << 32) << protocol::to_string(role);
    EXPECT_TRUE(join(next, worker_role({0}), worker));
  }

  journaled_job older;
  fence worker;
};

TEST_F(older_journal_test, shows_in_a_start_beyond_what_it_has_issued) {
  coordinator_core next(config(2), older);
  perform(next, next.on_agent());
  granted.clear();
  const auto actions = perform(next, next.on_role_started({worker_role({0}), {{9}, 1}, 100}));
  EXPECT_THAT(only<journal_is_older>(actions), SizeIs(1));
  EXPECT_THAT(
      only<journal_is_older>(perform(next, next.on_role_started({ps_shard_role({0}), {{8}, 1}, 100}))),
      IsEmpty())
      << "it has begun anew already";
  EXPECT_TRUE(join(next, worker_role({0}), {{9}, 1}));
  EXPECT_FALSE(join(next, worker_role({0}), worker)) << "an older one";
}

TEST_F(older_journal_test, shows_in_a_start_under_the_token_of_another) {
  coordinator_core next(config(2), older);
  perform(next, next.on_agent());
  granted.clear();
  worker = {{3}, 77};
  expect_begins_anew(next, perform(next, next.on_role_started({worker_role({0}), worker, 100})));
}

TEST_F(older_journal_test, shows_in_a_role_that_joins_before_the_agent_speaks) {
  coordinator_core next(config(2), older);
  perform(next, next.on_agent());
  granted.clear();
  worker = {{9}, 3};
  expect_begins_anew(next,
                     perform(next, next.on_join({worker_role({0}), worker, 100, {"there", 9, ""}, "A"})));
}

TEST_F(older_journal_test, shows_in_a_start_that_is_over) {
  coordinator_core next(config(2), older);
  perform(next, next.on_agent());
  granted.clear();
  protocol::role_exited exited;
  exited.role = worker_role({0});
  exited.self = {{9}, 3};
  exited.again = true;
  EXPECT_THAT(only<journal_is_older>(perform(next, next.on_role_exited(exited, now))), SizeIs(1));
  EXPECT_GT(granted.at(worker_role({0})).front().incarnation.value, std::uint64_t{1} << 32);
}

TEST_F(older_journal_test, is_not_seen_in_starts_that_the_journal_knows_or_that_are_used_up) {
  coordinator_core next(config(2), journal);
  perform(next, next.on_agent());
  EXPECT_THAT(only<journal_is_older>(perform(next, next.on_role_started({worker_role({0}), worker, 100}))),
              IsEmpty());
  protocol::role_exited exited;
  exited.role = worker_role({0});
  exited.self = {{1}, 4711};
  exited.again = true;
  EXPECT_THAT(only<journal_is_older>(perform(next, next.on_role_exited(exited, now))), IsEmpty());
}

TEST_F(coordinator_recovery_test, another_root_tells_what_runs_and_gets_fences_of_its_own) {
  perform(core, core.on_agent());
  const auto worker = start(core, worker_role({0}));
  const auto before = granted;
  granted.clear();
  perform(core, core.on_agent(agent + 1));
  EXPECT_GT(granted.at(worker_role({0})).front().incarnation, before.at(worker_role({0})).back().incarnation);
  perform(core, core.on_role_started({worker_role({0}), worker, 100}));
  EXPECT_TRUE(join(core, worker_role({0}), worker));
}

TEST_F(coordinator_recovery_test, of_another_root_a_new_coordinator_believes_what_runs_of_it_alone) {
  perform(core, core.on_agent());
  const auto worker = start(core, worker_role({0}));
  auto of_another = config(2);
  of_another.agent = agent + 1;
  coordinator_core next(of_another, journal);
  perform(next, next.on_agent(agent + 1));
  EXPECT_FALSE(join(next, worker_role({0}), worker)) << "the root may have started another meanwhile";
  perform(next, next.on_role_started({worker_role({0}), worker, 100}));
  EXPECT_TRUE(join(next, worker_role({0}), worker));
}

} // namespace
} // namespace dlrun::coordinator
