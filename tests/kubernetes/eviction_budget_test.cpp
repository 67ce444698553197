#include "kubernetes/eviction_budget.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using namespace std::chrono_literals;

class eviction_budget_test : public testing::Test {
protected:
  /// Three hosts that are in, with a pod each.
  eviction_budget_test() {
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
      auto& made = pod(slot);
      made.owner = "owner";
      made.address = "10.0.0." + std::to_string(slot);
      made.slot = slot;
      made.phase = pod_phase::running;
      made.runs = true;
      host(slot) = {host_standing::there, made.address};
    }
  }
  pod_record& pod(std::uint32_t slot) { return pods["u" + std::to_string(slot)]; }
  host_sight& host(std::uint32_t slot) { return (*hosts)[slot]; }
  /// What is told by then.
  std::optional<std::uint32_t> told_after(std::chrono::milliseconds time) {
    for (const auto end = now + time; now < end; now += 100ms)
      if (const auto news = budget.next(pods, wanted, hosts, now)) {
        budget.on_told(*news);
        told = news;
      }
    return told;
  }

  wanted_pods wanted{"owner", 3};
  std::map<std::string, pod_record> pods{};
  std::optional<host_sights> hosts{std::in_place};
  eviction_budget budget{};
  std::optional<std::uint32_t> told{};
  time_point now{1h};
};

TEST_F(eviction_budget_test, lets_one_go_where_all_is_in_two_places_for_a_while) {
  EXPECT_EQ(told_after(1900ms), 3U);
  EXPECT_EQ(told_after(300ms), 2U);
}

TEST_F(eviction_budget_test, lets_none_go_while_a_host_is_the_only_place_of_something) {
  ASSERT_EQ(told_after(5s), 2U);
  host(1).is_only_place = true;
  EXPECT_EQ(told_after(100ms), 3U) << "at once";
  EXPECT_EQ(told_after(1min), 3U);
  host(1).is_only_place = false;
  EXPECT_EQ(told_after(1900ms), 3U);
  EXPECT_EQ(told_after(300ms), 2U);
}

TEST_F(eviction_budget_test, lets_none_go_while_another_one_goes_or_its_successor_is_not_in) {
  ASSERT_EQ(told_after(5s), 2U);
  pod(1).is_going = true;
  EXPECT_EQ(told_after(1min), 3U) << "two others run, and one that follows gets ready before its host is in";
  pods["next"] = pod(0);
  auto& next = pods["next"];
  next.slot = 1;
  next.incarnation = 2;
  next.address = "10.0.0.9";
  EXPECT_EQ(told_after(1min), 3U);
  pods.erase("u1");
  EXPECT_EQ(told_after(1min), 3U);
  host(1) = {host_standing::joining, "10.0.0.9"};
  EXPECT_EQ(told_after(1min), 3U);
  host(1).standing = host_standing::there;
  EXPECT_EQ(told_after(3s), 2U);
}

TEST_F(eviction_budget_test,
       lets_none_go_while_a_container_has_ended_of_whose_host_the_job_does_not_know_it) {
  ASSERT_EQ(told_after(5s), 2U);
  pod(1).runs = false;
  EXPECT_EQ(told_after(1min), 3U) << "two run, and it may get ready again";
  pod(1).phase = pod_phase::failed;
  EXPECT_EQ(told_after(1min), 3U);
  host(1).standing = host_standing::away;
  EXPECT_EQ(told_after(1900ms), 3U);
  EXPECT_EQ(told_after(300ms), 1U) << "nothing of it was in one place only";
}

/// A drain is not held up for pods that have nothing, nor for one that nobody can say the end of.
TEST_F(eviction_budget_test, takes_no_account_of_pods_that_do_not_run_or_whose_node_is_dead) {
  auto& waiting = pods["waiting"] = pod(0);
  waiting.slot = 7;
  waiting.runs = false;
  waiting.phase = pod_phase::pending;
  auto& dead = pods["dead"] = pod(0);
  dead.is_going = true;
  dead.address = "10.0.0.9";
  EXPECT_EQ(told_after(3s), 2U);
}

TEST_F(eviction_budget_test, lets_all_go_of_a_job_that_has_not_begun) {
  hosts.reset();
  EXPECT_EQ(told_after(1min), 0U);
}

TEST_F(eviction_budget_test, lets_the_last_one_go_too_and_counts_no_pods_of_others) {
  for (auto slot : {1U, 2U}) pod(slot).owner = "another";
  for (auto slot : {1U, 2U}) hosts->erase(slot);
  EXPECT_EQ(told_after(3s), 0U);
}

TEST_F(eviction_budget_test, tells_what_was_refused_again_after_a_while_and_what_is_known_no_more) {
  ASSERT_EQ(budget.next(pods, wanted, hosts, now), 3U);
  budget.on_refused(now);
  EXPECT_FALSE(budget.next(pods, wanted, hosts, now + 1900ms));
  EXPECT_EQ(budget.next(pods, wanted, hosts, now + 2s), 2U) << "it is calm by now";
  budget.on_told(2);
  EXPECT_FALSE(budget.next(pods, wanted, hosts, now + 1h));
}

TEST_F(eviction_budget_test, lets_none_go_though_more_run_than_are_wanted_now) {
  wanted.hosts = 1;
  host(1).is_only_place = true;
  EXPECT_EQ(told_after(1min), 3U);
}

TEST_F(eviction_budget_test, tells_again_what_the_server_may_have_forgotten) {
  ASSERT_EQ(told_after(5s), 2U);
  EXPECT_FALSE(budget.next(pods, wanted, hosts, now));
  budget.forget();
  EXPECT_EQ(budget.next(pods, wanted, hosts, now), 2U);
}

TEST(eviction_budget, is_named_by_the_template) {
  EXPECT_EQ(
      budget_of(nlohmann::json::parse(R"({"metadata": {"annotations": {"dlrun/eviction-budget": "x"}}})")),
      "x");
  EXPECT_EQ(budget_of(nlohmann::json::parse("{}")), "");
  EXPECT_EQ(budget_name_of("job"), "job-hosts");
}

} // namespace
} // namespace dlrun::kubernetes
