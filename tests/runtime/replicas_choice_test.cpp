#include "runtime/replicas_choice.hpp"

#include "runtime/hosts_run.hpp"
#include "runtime/new_run.hpp"
#include "runtime/resumption.hpp"
#include "runtime/run_record.hpp"
#include "tests/job/spec_text.hpp"
#include "tests/runtime/small_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint64_t record_bytes = 2'680'000;

spec::JobSpec job_with(const std::vector<std::string>& overrides) {
  return test::parse(test::minimal_spec, overrides).value();
}

replicas_choice chosen(std::size_t hosts, const std::vector<std::string>& overrides = {}) {
  return choose_replicas(job_with(overrides), hosts, record_bytes);
}

/// A list of so many hosts, of which this is the first.
hosts_plan plan_of(int hosts, int begins_with = 0) {
  hosts_plan plan{
      .file = "hosts.yaml", .hosts = {}, .numbers = {}, .starter_program = {}, .agent_program = {}};
  for (int i = 0; i < hosts; ++i) {
    plan.hosts.add_hosts()->set_name("host" + std::to_string(i));
    plan.numbers.push_back("127.0.0." + std::to_string(i + 1));
  }
  if (begins_with > 0) plan.hosts.mutable_join()->set_hosts_min(begins_with);
  return plan;
}

TEST(replicas_choice, of_a_job_on_one_host_is_one_store) {
  const auto choice = chosen(1);
  EXPECT_EQ(choice.replicas, 1U);
  EXPECT_TRUE(choice.is_auto);
  EXPECT_THAT(choice.reason, HasSubstr("begins with one host"));
  EXPECT_THAT(choice.reason, HasSubstr("join.hosts_min")) << "the way out where hosts join later";
  EXPECT_EQ(choice.degraded, "");
}

TEST(replicas_choice, of_a_job_of_several_hosts_is_two_with_what_a_lost_host_costs) {
  for (const auto* const log : {"every_step", "snapshots"}) {
    const auto choice = chosen(3, {std::string("durability.log=") + log});
    EXPECT_EQ(choice.replicas, 2U) << log;
    EXPECT_TRUE(choice.is_auto);
    EXPECT_THAT(choice.reason, HasSubstr("begins with 3 hosts"));
    EXPECT_THAT(choice.reason, HasSubstr(std::string(cost_with_copies(log))));
    EXPECT_EQ(choice.degraded, "");
  }
}

TEST(replicas_choice, says_what_goes_over_a_link_that_will_be_measured) {
  EXPECT_THAT(
      chosen(2, {"durability.log=every_step"}).reason,
      HasSubstr("which is sent 2.68 MB a step (what its link makes of that is measured while it trains)"));
  EXPECT_THAT(chosen(2, {"durability.log=snapshots"}).reason,
              HasSubstr("which is sent each snapshot (what its link makes of that is measured"));
}

TEST(replicas_choice, says_how_much_of_the_time_steps_have_waited_for_copies) {
  dlrun::report so_far;
  so_far.durability = {"every_step", "process", 2, 30};
  EXPECT_EQ(tell_copy_cost(so_far), "") << "it has not run";
  so_far.wall_seconds = 120;
  EXPECT_EQ(tell_copy_cost(so_far), "; so far steps have waited for copies 25 % of the time");
  so_far.durability.replicas = 1;
  EXPECT_EQ(tell_copy_cost(so_far), "") << "there were none in the newest start";
}

TEST(replicas_choice, is_one_where_nothing_can_be_copied_with_the_reason) {
  const auto off = chosen(2, {"durability.log=off"});
  EXPECT_EQ(off.replicas, 1U);
  EXPECT_THAT(off.reason, HasSubstr("durability.log: off"));
  const auto relaxed = chosen(2, {"durability.log=every_step", "cluster.determinism=relaxed"});
  EXPECT_EQ(relaxed.replicas, 1U);
  EXPECT_THAT(relaxed.reason, HasSubstr("cluster.determinism is relaxed"));
}

TEST(replicas_choice, that_the_job_makes_itself_has_no_reason) {
  const auto two = chosen(2, {"durability.replicas=2", "durability.log=every_step"});
  EXPECT_EQ(two.replicas, 2U);
  EXPECT_FALSE(two.is_auto);
  EXPECT_EQ(two.reason + two.degraded, "");
  const auto one = chosen(1, {"durability.replicas=1"});
  EXPECT_EQ(one.replicas, 1U);
  EXPECT_EQ(one.reason + one.degraded, "") << "on one host nothing is given up";
}

TEST(replicas_choice, of_one_store_where_there_could_be_two_is_a_warning_with_the_way_out) {
  const auto one = chosen(3, {"durability.replicas=1", "durability.log=every_step"});
  EXPECT_EQ(one.replicas, 1U);
  EXPECT_EQ(one.reason, "");
  EXPECT_THAT(one.degraded, StartsWith("degraded: with durability.replicas: 1 a host that is lost"));
  EXPECT_THAT(one.degraded,
              HasSubstr("let it be auto, and in a job of 3 hosts that costs no committed step"));
  EXPECT_EQ(chosen(3, {"durability.replicas=1", "durability.log=off"}).degraded, "")
      << "it could not have two";
  EXPECT_EQ(chosen(3, {"durability.replicas=1", "cluster.determinism=relaxed"}).degraded, "");
}

TEST(hosts_at_least, are_those_of_the_list_or_as_many_as_must_have_joined) {
  EXPECT_EQ(hosts_at_least(std::nullopt), 1U);
  EXPECT_EQ(hosts_at_least(plan_of(3)), 3U);
  EXPECT_EQ(hosts_at_least(plan_of(1, 1)), 1U) << "others may join later: nobody knows whether they do";
  EXPECT_EQ(hosts_at_least(plan_of(1, 4)), 4U);
  EXPECT_EQ(hosts_at_least(plan_of(3, 2)), 3U);
}

TEST(hosts_of_a_job, are_two_for_two_stores_and_any_for_auto) {
  const auto refused = check_for_hosts(job_with({"durability.replicas=2"}), std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("durability.replicas: 2 stores"));
  EXPECT_THAT(refused.error().message, HasSubstr("let it be auto"));
  EXPECT_FALSE(check_for_hosts(job_with({"durability.replicas=2"}), plan_of(1, 1)));
  EXPECT_TRUE(check_for_hosts(job_with({"durability.replicas=2"}), plan_of(2)));
  EXPECT_TRUE(check_for_hosts(job_with({}), std::nullopt));
  EXPECT_TRUE(check_for_hosts(job_with({}), plan_of(1, 1)));
}

/// What begins and goes on, on this host or by a list of several.
class settled_replicas : public testing::Test {
protected:
  /// Begins a run and leaves it as it is then. @returns the number for its roles.
  std::string begun(const std::optional<hosts_plan>& hosts, std::vector<std::string> overrides = {}) {
    overrides.emplace_back("cluster.placement=processes");
    auto job = prepare_new_job(small.job(overrides).message());
    EXPECT_TRUE(job) << (job ? "" : job.error().message);
    const auto run = begin_run(*job, small.run_dir().string(), {.hosts = hosts});
    EXPECT_TRUE(run) << (run ? "" : run.error().message);
    EXPECT_EQ(run->replicas.has_value(), hosts.has_value()) << "of one host nothing is said";
    return job->spec.durability().replicas();
  }
  result<resumption> resumed(const std::optional<hosts_plan>& hosts,
                             const std::vector<std::string>& overrides = {}) {
    return prepare_resumption(small.run_dir(), {.overrides = overrides}, hosts);
  }
  /// Its hosts are there, and it goes on.
  void go_on(const resumption& made) const {
    auto record = *read_record(small.run_dir()).value();
    made.change->of_record(record);
    EXPECT_TRUE(write_record(small.run_dir(), record));
    EXPECT_TRUE(made.change->of_files());
  }
  /// What the folder says: the last revision, and the number of the newest start.
  std::string kept() const {
    const auto record = read_record(small.run_dir());
    if (!record || !*record) return "no record";
    const auto& written = (*record)->revisions().rbegin()->durability().replicas();
    return written + ", " + std::to_string((*record)->replicas());
  }

  test::small_training small;
};

TEST_F(settled_replicas, are_for_the_roles_and_auto_stays_what_the_run_is_trained_with) {
  EXPECT_EQ(begun(plan_of(2)), "2");
  EXPECT_EQ(kept(), "auto, 2");
}

TEST_F(settled_replicas, of_several_hosts_become_one_on_one_host_and_two_again_later) {
  begun(plan_of(2));
  {
    const auto alone = resumed(std::nullopt);
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->job->spec.durability().replicas(), "1");
    EXPECT_EQ(kept(), "auto, 2") << "its hosts may not come";
    go_on(*alone);
    EXPECT_EQ(kept(), "auto, 1");
    EXPECT_FALSE(alone->is_same_job);
    ASSERT_TRUE(alone->replicas);
    EXPECT_THAT(alone->replicas->reason, HasSubstr("begins with one host"));
    EXPECT_THAT(alone->replicas->reason, testing::EndsWith("; before it was 2"));
  }
  {
    const auto still = resumed(std::nullopt);
    ASSERT_TRUE(still) << still.error().message;
    EXPECT_TRUE(still->is_same_job);
    EXPECT_FALSE(still->replicas) << "that was said";
  }
  const auto again = resumed(plan_of(2));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->job->spec.durability().replicas(), "2");
  go_on(*again);
  EXPECT_EQ(kept(), "auto, 2");
  EXPECT_FALSE(again->is_same_job) << "what an earlier root started has no copies";
  EXPECT_THAT(again->replicas->reason, testing::EndsWith("; before it was 1"));
}

TEST_F(settled_replicas, that_go_on_are_told_with_what_they_have_cost) {
  begun(plan_of(2));
  dlrun::report so_far;
  so_far.durability = {"every_step", "process", 2, 30};
  so_far.wall_seconds = 60;
  ASSERT_TRUE(dlrun::write_report(small.run_dir() / "report.json", so_far));
  const auto again = resumed(plan_of(2));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(again->replicas->reason,
              testing::EndsWith("; so far steps have waited for copies 50 % of the time"));
}

TEST_F(settled_replicas, of_the_same_hosts_are_those_of_the_same_job) {
  begun(plan_of(2));
  const auto same = resumed(plan_of(3));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_TRUE(same->is_same_job);
  EXPECT_THAT(same->replicas->reason, HasSubstr("begins with 3 hosts"));
  EXPECT_THAT(same->replicas->reason, testing::Not(HasSubstr("before it was")));
}

TEST_F(settled_replicas, that_were_asked_for_are_refused_on_one_host_and_nothing_is_changed) {
  begun(plan_of(2), {"durability.replicas=2"});
  EXPECT_EQ(kept(), "2, 2");
  const auto refused = resumed(std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_spec);
  EXPECT_THAT(refused.error().message, HasSubstr("let it be auto"));
  EXPECT_EQ(kept(), "2, 2");
  const auto alone = resumed(std::nullopt, {"durability.replicas=auto"});
  ASSERT_TRUE(alone) << alone.error().message;
  go_on(*alone);
  EXPECT_EQ(kept(), "auto, 1");
}

TEST_F(settled_replicas, that_a_resume_asks_for_in_vain_are_not_kept) {
  begun(std::nullopt);
  EXPECT_FALSE(resumed(std::nullopt, {"durability.replicas=2"}));
  EXPECT_EQ(kept(), "auto, 1");
  EXPECT_TRUE(resumed(std::nullopt));
}

} // namespace
} // namespace dlrun::runtime
