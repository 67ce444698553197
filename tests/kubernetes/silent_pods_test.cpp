#include "kubernetes/silent_pods.hpp"

#include "tests/kubernetes/pod_plan_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using test::pod;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

class silent_pods_test : public testing::Test {
protected:
  pod_record& run(std::uint32_t slot, std::uint32_t incarnation = 1) {
    const auto made = pod(slot, incarnation);
    return pods[made.uid] = made;
  }
  std::vector<std::string> look() { return silences.look(pods, hosts, now); }
  std::vector<std::string> look_after(std::chrono::milliseconds time) {
    look();
    now += time;
    return look();
  }

  silent_pods silences{{.root = "control pod job-x (10.0.0.1), TCP port 7700"}};
  std::map<std::string, pod_record> pods{};
  host_sights hosts{};
  time_point now{1h};
};

TEST_F(silent_pods_test, one_that_runs_and_does_not_join_is_told_once_with_both_ends_of_its_way) {
  run(0);
  EXPECT_THAT(look_after(29s), IsEmpty());
  EXPECT_THAT(silences.told(), IsEmpty());
  now += 1s;
  const auto text = AllOf(HasSubstr("pod job-hosts-0-1 (10.0.0.1) has run for 30 s"),
                          HasSubstr("reach control pod job-x (10.0.0.1), TCP port 7700"),
                          HasSubstr("a NetworkPolicy"), HasSubstr("kubectl logs job-hosts-0-1"));
  EXPECT_THAT(look(), ElementsAre(text));
  now += 1h;
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(silences.told(), ElementsAre(text)) << "as long as it holds";
  hosts[0] = {host_standing::joining, "10.0.0.1"};
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(silences.told(), IsEmpty());
}

TEST_F(silent_pods_test, one_is_in_doubt_once_before_it_is_told) {
  run(0);
  look_after(14s);
  EXPECT_FALSE(silences.is_in_doubt());
  now += 1s;
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_TRUE(silences.is_in_doubt());
  look_after(1s);
  EXPECT_FALSE(silences.is_in_doubt());
}

/// Each doubt has all pods listed.
TEST_F(silent_pods_test, many_that_began_one_after_the_other_are_in_doubt_a_few_times) {
  int doubts = 0;
  for (std::uint32_t slot = 0; slot < 600; ++slot) {
    if (slot < 300) run(slot);
    now += 100ms;
    look();
    doubts += silences.is_in_doubt() ? 1 : 0;
  }
  EXPECT_EQ(doubts, 4) << "30 s of them, by 7.5 s each";
}

TEST_F(silent_pods_test, those_that_are_silent_together_are_told_together) {
  for (std::uint32_t slot = 0; slot < 7; ++slot) run(slot);
  EXPECT_THAT(look_after(30s),
              ElementsAre(AllOf(HasSubstr("7 pods have run for 30 s"),
                                HasSubstr(": job-hosts-0-1 (10.0.0.1), job-hosts-1-1 (10.0.1.1)"),
                                HasSubstr("job-hosts-4-1 (10.0.4.1) and 2 others; each has to reach"))));
  run(7);
  EXPECT_THAT(look_after(30s), ElementsAre(HasSubstr("pod job-hosts-7-1 (10.0.7.1) has run")));
  EXPECT_THAT(silences.told(), ElementsAre(HasSubstr("8 pods")));
}

/// It fetches data, gets ready in another way, or was given up since: others tell that.
TEST_F(silent_pods_test, one_that_the_root_has_let_in_is_none) {
  run(0);
  run(1);
  hosts[0] = {host_standing::joining, "10.0.0.1"};
  hosts[1] = {host_standing::there, "10.0.1.1"};
  EXPECT_THAT(look_after(1h), IsEmpty());
  hosts[0].standing = hosts[1].standing = host_standing::away;
  EXPECT_THAT(look_after(1h), IsEmpty());
}

TEST_F(silent_pods_test, one_whose_predecessor_was_let_in_has_its_time_when_that_has_gone) {
  run(0, 2);
  hosts[0] = {host_standing::there, "10.0.0.1"};
  look_after(1h);
  hosts[0].standing = host_standing::away;
  EXPECT_THAT(look_after(29s), IsEmpty());
  now += 1s;
  EXPECT_THAT(look(), ElementsAre(HasSubstr("job-hosts-0-2")));
}

TEST_F(silent_pods_test, one_that_waits_until_the_one_before_has_left_is_none) {
  run(0, 2);
  hosts[0] = {host_standing::there, "10.0.0.1"};
  EXPECT_THAT(look_after(1h), IsEmpty());
}

TEST_F(silent_pods_test, one_that_the_root_turned_away_just_now_reaches_it) {
  run(0);
  run(1, 2);
  hosts[0].turned_away = "10.0.0.1";
  hosts[1].turned_away = "10.0.1.1";
  EXPECT_THAT(look_after(1h), ElementsAre(AllOf(HasSubstr("job-hosts-1-2"), Not(HasSubstr("job-hosts-0-1")))))
      << "it turned away the pod before that";
}

TEST_F(silent_pods_test, those_that_do_not_run_or_go_or_are_gone_are_none) {
  for (std::uint32_t slot = 0; slot < 3; ++slot) run(slot);
  look_after(30s);
  pods.at("u0-1").runs = false;
  pods.at("u1-1").is_going = true;
  pods.erase("u2-1");
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(silences.told(), IsEmpty());
}

TEST_F(silent_pods_test, one_whose_container_was_started_again_has_its_time_again) {
  auto& one = run(0);
  look_after(20s);
  one.runs = false;
  look();
  one.runs = true;
  EXPECT_THAT(look_after(29s), IsEmpty());
}

} // namespace
} // namespace dlrun::kubernetes
