#include "actors/coordinator/coordinator_core.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using protocol::job_outcome;
using protocol::ps_shard_role;
using protocol::role_name;
using protocol::time_point;
using protocol::worker_role;
using std::chrono::milliseconds;
using test::only;
using testing::HasSubstr;
using testing::IsEmpty;

/// The coordinator of a job with two workers and two PS shards of 1500 and 1 blocks.
class coordinator_core_test : public testing::Test {
protected:
  coordinator_core_test()
      : core(config()) {}

  coordinator_core_config config() {
    coordinator_core_config made;
    made.self = {4};
    made.workers = 2;
    made.ps_shards = 2;
    made.evaluates = true;
    made.blocks_of_shard = {{0, 1500}, {1500, 1501}};
    made.steps = 10;
    made.random = [this] { return ++token; };
    return made;
  }
  /// What the agent knows after these actions.
  coordinator_actions perform(coordinator_actions actions) {
    for (const auto& action : actions)
      if (const auto* one = std::get_if<send_grant>(&action)) granted[one->grant.role] = one->grant.fences;
    return actions;
  }
  fence start(role_name role) {
    const auto self = granted.at(role).front();
    perform(core.on_role_started({role, self, 100}));
    return self;
  }
  coordinator_actions join(role_name role, fence self, std::string fingerprint = "A",
                           std::string device = "cpu") {
    if (role.kind != protocol::role_kind::worker) device.clear();
    return perform(
        core.on_join({role, self, 100, {"somewhere", self.incarnation.value, ""}, fingerprint, device}));
  }
  fence start_and_join(role_name role) {
    const auto self = start(role);
    join(role, self);
    return self;
  }
  coordinator_actions exit(role_name role, fence self, std::string cause = "killed by signal 9 (SIGKILL)") {
    return perform(core.on_role_exited({role, self, cause, 2000, true}, now));
  }
  void start_everything() {
    perform(core.on_agent());
    for (std::uint32_t i = 0; i < 2; ++i) {
      shards[i] = start_and_join(ps_shard_role({i}));
      workers[i] = start_and_join(worker_role({i}));
    }
  }
  protocol::directory_entry entry(role_name role) const {
    for (const auto& one : core.directory().entries)
      if (one.role == role) return one;
    return {};
  }
  protocol::join_reply answer(const coordinator_actions& actions) {
    const auto answers = only<answer_join>(actions);
    return answers.size() == 1 ? answers[0].reply : protocol::join_reply{false, "no answer"};
  }

  std::uint64_t token = 1000;
  coordinator_core core;
  std::map<role_name, std::vector<fence>> granted;
  fence shards[2], workers[2];
  time_point now{std::chrono::hours(1)};
};

TEST_F(coordinator_core_test, the_agent_gets_fences_in_advance_for_every_role_it_starts) {
  perform(core.on_agent());
  EXPECT_EQ(granted.size(), 4U);
  for (const auto& [role, fences] : granted) EXPECT_EQ(fences.size(), 3U) << "one to use and two to spare";
}

TEST_F(coordinator_core_test, incarnations_grow_and_tokens_differ_over_all_starts) {
  perform(core.on_agent());
  incarnation newest{};
  std::set<std::uint64_t> tokens;
  for (int i = 0; i < 20; ++i) {
    const auto self = start(worker_role({0}));
    EXPECT_GT(self.incarnation, newest);
    newest = self.incarnation;
    EXPECT_TRUE(tokens.insert(self.token).second);
    EXPECT_EQ(granted.at(worker_role({0})).size(), 2U);
    exit(worker_role({0}), self);
  }
}

TEST_F(coordinator_core_test, asking_again_gives_the_same_fences) {
  perform(core.on_agent());
  const auto before = granted;
  perform(core.on_agent());
  EXPECT_EQ(granted, before);
}

TEST_F(coordinator_core_test, a_start_with_a_granted_fence_may_join_also_before_the_agent_tells_of_it) {
  perform(core.on_agent());
  const auto self = granted.at(worker_role({0})).front();
  const auto actions = join(worker_role({0}), self);
  EXPECT_TRUE(answer(actions).accepted);
  EXPECT_EQ(only<protocol::worker_available>(actions).size(), 1U);
  EXPECT_TRUE(entry(worker_role({0})).joined);
  EXPECT_EQ(entry(worker_role({0})).incarnation, self.incarnation);
}

TEST_F(coordinator_core_test, a_repeated_join_is_answered_again_and_changes_nothing) {
  start_everything();
  const auto before = core.directory().sequence;
  const auto actions = join(worker_role({0}), workers[0]);
  EXPECT_TRUE(answer(actions).accepted);
  EXPECT_THAT(only<protocol::worker_available>(actions), IsEmpty());
  EXPECT_EQ(core.directory().sequence, before);
}

TEST_F(coordinator_core_test, a_guessed_token_or_a_role_that_does_not_exist_is_refused) {
  start_everything();
  EXPECT_THAT(answer(join(worker_role({0}), {workers[0].incarnation, 5})).reason,
              HasSubstr("worker 0 incarnation 1 was never issued with this token"));
  EXPECT_THAT(answer(join(worker_role({0}), {{99}, 5})).reason,
              HasSubstr("the newest that was started is 1"));
  EXPECT_FALSE(answer(join(worker_role({2}), {{1}, 1})).accepted);
  EXPECT_FALSE(answer(join({protocol::role_kind::coordinator, 0}, {{4}, 0})).accepted);
  EXPECT_FALSE(answer(join({protocol::role_kind::data_dispatcher, 0}, {{4}, 0})).accepted);
}

TEST_F(coordinator_core_test, an_older_start_and_one_that_is_over_are_refused) {
  start_everything();
  exit(worker_role({0}), workers[0]);
  EXPECT_THAT(answer(join(worker_role({0}), workers[0])).reason, HasSubstr("is over"));
  start_and_join(worker_role({0}));
  EXPECT_EQ(answer(join(worker_role({0}), workers[0])).reason,
            "worker 0 incarnation 1 is not the newest, which is 2");
}

TEST_F(coordinator_core_test, the_join_of_a_newer_start_says_that_the_older_is_over) {
  start_everything();
  const auto newer = granted.at(worker_role({0})).front();
  const auto actions = join(worker_role({0}), newer);
  ASSERT_EQ(only<protocol::worker_gone>(actions).size(), 1U);
  EXPECT_EQ(only<protocol::worker_gone>(actions)[0].incarnation, workers[0].incarnation);
  EXPECT_EQ(only<protocol::worker_available>(actions).size(), 1U);
  EXPECT_THAT(only<protocol::worker_gone>(exit(worker_role({0}), workers[0])), IsEmpty())
      << "the late notice of the older one";
  EXPECT_TRUE(entry(worker_role({0})).joined);
}

TEST_F(coordinator_core_test, hosts_that_would_compute_other_bits_are_refused_naming_both) {
  perform(core.on_agent());
  join(ps_shard_role({0}), start(ps_shard_role({0})), "avx2");
  const auto reason = answer(join(worker_role({1}), start(worker_role({1})), "avx512")).reason;
  EXPECT_THAT(reason, HasSubstr("worker 1 has the fingerprint 'avx512'"));
  EXPECT_THAT(reason, HasSubstr("ps_shard 0 joined with 'avx2'"));
}

TEST_F(coordinator_core_test, workers_of_two_devices_are_refused_naming_both) {
  perform(core.on_agent());
  join(ps_shard_role({0}), start(ps_shard_role({0})));
  EXPECT_EQ(core.starts().arithmetic().device(), "");
  EXPECT_TRUE(answer(join(worker_role({0}), start(worker_role({0})), "A", "H100")).accepted);
  EXPECT_EQ(core.starts().arithmetic().device(), "H100");
  const auto reply = answer(join(worker_role({1}), start(worker_role({1})), "A", "A100"));
  EXPECT_FALSE(reply.accepted);
  EXPECT_THAT(reply.reason, HasSubstr("worker 1 computes on 'A100', but worker 0 joined with 'H100'"));
  EXPECT_THAT(reply.reason, HasSubstr("cluster.gpus"));
  EXPECT_TRUE(answer(join(ps_shard_role({1}), start(ps_shard_role({1})))).accepted)
      << "it computes on no device";
}

TEST_F(coordinator_core_test, a_lost_worker_goes_and_its_replacement_comes) {
  start_everything();
  const auto actions = exit(worker_role({1}), workers[1]);
  EXPECT_EQ(only<protocol::worker_gone>(actions).size(), 1U);
  EXPECT_FALSE(entry(worker_role({1})).joined);
  EXPECT_THAT(exit(worker_role({1}), workers[1]), IsEmpty()) << "told again";
  const auto newer = start_and_join(worker_role({1}));
  core.recoveries().on_redispatched({1}, workers[1].incarnation, milliseconds(8));
  now += milliseconds(300);
  core.recoveries().on_resumed(worker_role({1}), newer.incarnation, now);
  ASSERT_EQ(core.recoveries().all().size(), 1U);
  const auto& record = core.recoveries().all()[0];
  EXPECT_EQ(record.cause, "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(record.lost, workers[1].incarnation);
  EXPECT_EQ(record.replacement, newer.incarnation);
  EXPECT_EQ(record.detected, milliseconds(2));
  EXPECT_EQ(record.redispatched, milliseconds(8));
  EXPECT_EQ(record.resumed, milliseconds(300));
}

TEST_F(coordinator_core_test,
       the_loss_of_a_shard_that_keeps_nothing_on_disk_fails_the_job_with_its_name_and_cause) {
  start_everything();
  const auto ends = only<finish_job>(exit(ps_shard_role({1}), shards[1]));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].ended.outcome, job_outcome::failed);
  EXPECT_THAT(ends[0].ended.reason, HasSubstr("ps_shard 1 was lost (killed by signal 9 (SIGKILL))"));
  EXPECT_THAT(only<finish_job>(exit(ps_shard_role({0}), shards[0])), IsEmpty()) << "a job ends once";
}

TEST_F(coordinator_core_test, a_newer_start_of_a_shard_tells_of_the_loss_when_the_notice_was_lost) {
  start_everything();
  const auto newer = granted.at(ps_shard_role({0})).front();
  EXPECT_EQ(only<finish_job>(join(ps_shard_role({0}), newer)).size(), 1U);
}

TEST_F(coordinator_core_test, a_shard_that_never_joined_takes_nothing_with_it) {
  perform(core.on_agent());
  const auto self = start(ps_shard_role({0}));
  EXPECT_THAT(only<finish_job>(exit(ps_shard_role({0}), self)), IsEmpty());
  EXPECT_TRUE(answer(join(ps_shard_role({0}), start(ps_shard_role({0})))).accepted);
}

TEST_F(coordinator_core_test, the_job_is_completed_after_training_evaluation_and_all_digests) {
  start_everything();
  EXPECT_THAT(core.ending().on_training_finished({}, {10}), IsEmpty());
  EXPECT_EQ(only<request_digests>(core.ending().on_evaluated({})).size(), 2U);
  core.ending().on_digests({0}, {0, std::string(1024 * 32, 'a')});
  core.ending().on_digests({0}, {1024, std::string(476 * 32, 'b')});
  const auto ends = only<finish_job>(core.ending().on_digests({1}, {1500, std::string(32, 'c')}));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].ended.outcome, job_outcome::completed);
}

TEST_F(coordinator_core_test, who_joins_when_the_job_is_over_has_no_answer_and_is_ended_with_all_others) {
  start_everything();
  core.ending().fail("somebody's doing");
  const auto late = start(worker_role({0}));
  EXPECT_THAT(only<answer_join>(join(worker_role({0}), late)), IsEmpty())
      << "refused, it would exit: a loss, and a restart of the budget";
}

TEST_F(coordinator_core_test, what_has_not_come_is_asked_for_again_by_timer) {
  perform(core.on_agent());
  EXPECT_EQ(only<send_grant>(core.on_tick(now)).size(), 4U) << "nothing has started yet";
  EXPECT_THAT(core.on_tick(now + milliseconds(10)), IsEmpty());
  start_everything();
  core.ending().on_training_finished({}, {10});
  core.ending().on_evaluated({});
  now += milliseconds(600);
  const auto actions = core.on_tick(now);
  EXPECT_EQ(only<request_digests>(actions).size(), 2U);
  EXPECT_EQ(only<send_directory>(actions).size(), 1U);
  EXPECT_THAT(only<send_grant>(actions), IsEmpty()) << "all have started";
}

TEST_F(coordinator_core_test, coordinator_and_dispatcher_are_in_the_directory_and_each_start_of_it_is_newer) {
  core.on_dispatcher_started({"somewhere", 1, ""});
  const auto first = core.dispatcher_incarnation();
  EXPECT_EQ(first, incarnation{4});
  core.on_dispatcher_started({"somewhere", 1, ""});
  EXPECT_GT(core.dispatcher_incarnation(), first);
  EXPECT_TRUE(entry({protocol::role_kind::data_dispatcher, 0}).joined);
  EXPECT_TRUE(entry({protocol::role_kind::coordinator, 0}).joined);
}

TEST_F(coordinator_core_test, a_dispatcher_that_was_started_again_is_told_who_can_work) {
  start_everything();
  EXPECT_EQ(core.starts().available_workers().size(), 2U);
  exit(worker_role({0}), workers[0]);
  ASSERT_EQ(core.starts().available_workers().size(), 1U);
  EXPECT_EQ(core.starts().available_workers()[0].worker, worker_id{1});
}

TEST_F(coordinator_core_test, an_agent_that_gives_up_and_a_request_to_stop_end_the_job_with_the_reason) {
  start_everything();
  const auto ends = only<finish_job>(core.ending().fail("worker 1 failed 6 times in 30 s"));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].ended.outcome, job_outcome::failed);
  EXPECT_EQ(ends[0].ended.reason, "worker 1 failed 6 times in 30 s");
  EXPECT_THAT(core.ending().on_stop({job_outcome::interrupted, "Ctrl-C"}), IsEmpty());
  EXPECT_FALSE(answer(join(worker_role({0}), workers[0])).accepted);
  EXPECT_THAT(core.on_tick(now + milliseconds(9000)), IsEmpty());
}

TEST_F(coordinator_core_test, who_dies_after_the_end_takes_nothing_with_it_and_is_no_recovery) {
  start_everything();
  perform(core.ending().on_stop({job_outcome::interrupted, "Ctrl-C"}));
  const auto actions = exit(worker_role({0}), workers[0]);
  EXPECT_THAT(only<protocol::worker_gone>(actions), IsEmpty());
  EXPECT_THAT(core.recoveries().all(), IsEmpty());
  EXPECT_FALSE(entry(worker_role({0})).joined);
}

} // namespace
} // namespace dlrun::coordinator
