#include "kubernetes/host_pods.hpp"

#include "tests/kubernetes/played_cluster.hpp"
#include "tests/kubernetes/pod_plan_fixture.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

class host_pods_test : public testing::Test {
protected:
  host_pods_test() { cluster.wanted = 2; }

  void look() {
    for (auto& one : cluster.news()) pods.on_news(std::move(one));
    if (has_begun) pods.hosts_are(sights());
    pods.pass();
  }
  /// As of a job with copies: what is there is nowhere else while another host is away.
  host_sights sights() const {
    auto all = cluster.sights();
    const auto there =
        std::ranges::count(all, host_standing::there, [](const auto& one) { return one.second.standing; });
    for (auto& [slot, host] : all)
      host.is_only_place = host.standing == host_standing::there && there < cluster.wanted;
    return all;
  }
  void run_for(std::chrono::milliseconds time) {
    for (const auto end = cluster.now + time; cluster.now < end; cluster.pass(100ms)) look();
  }
  std::string uid_of(const std::string& name) const {
    for (const auto& [uid, pod] : cluster.pods)
      if (pod.told.name == name) return uid;
    return "";
  }

  bool has_begun = true; ///< the job
  played_cluster cluster{1};
  api_client client = cluster.make_client();
  pod_requests requests{
      client,
      {.job = "job",
       .own_pod = "control",
       .pod_template = nlohmann::json::parse(R"({"spec": {"containers": [{"image": ""}]}})")}};
  std::vector<std::string> told{}, warned{};
  int lists = 0; ///< that were asked for
  host_pods pods{requests,
                 client,
                 {.tell = [this](const auto& text) { told.push_back(text); },
                  .warn = [this](const auto& text) { warned.push_back(text); },
                  .list_anew = [this] { ++lists; },
                  .budget = "job-hosts"}};
};

TEST_F(host_pods_test, makes_what_is_wanted_and_says_so) {
  look();
  EXPECT_THAT(told,
              ElementsAre("made pod job-hosts-0-1: it has none", "made pod job-hosts-1-1: it has none"));
  run_for(10s);
  EXPECT_EQ(cluster.created, 2U);
  EXPECT_THAT(warned, IsEmpty());
}

/// As after a restoration of the server's etcd, of which the watch tells nothing.
TEST_F(host_pods_test, forgets_a_pod_that_the_server_does_not_know_and_has_all_listed) {
  run_for(10s);
  EXPECT_EQ(lists, 0);
  const auto gone = uid_of("job-hosts-1-1");
  cluster.cut_off(gone);
  run_for(900ms);
  cluster.pods.erase(gone);
  run_for(1min);
  EXPECT_NE(uid_of("job-hosts-1-2"), "");
  EXPECT_THAT(told, Not(Contains(HasSubstr("deleted pod job-hosts-1-1"))));
  EXPECT_EQ(lists, 1);
}

TEST_F(host_pods_test, says_when_all_run_and_when_they_do_again) {
  const auto said = [this] { return std::ranges::count(told, "all 2 pods of hosts run"); };
  look();
  EXPECT_EQ(said(), 0) << "they are made, and nobody has told that they run";
  run_for(10s);
  EXPECT_EQ(said(), 1);
  cluster.remove(uid_of("job-hosts-0-1"));
  run_for(10s);
  EXPECT_EQ(said(), 2);
  cluster.cut_off(uid_of("job-hosts-1-1"));
  run_for(60s);
  EXPECT_NE(uid_of("job-hosts-1-2"), "");
  EXPECT_EQ(said(), 2) << "the one that was given up is there still";
  cluster.come_back(uid_of("job-hosts-1-1"));
  run_for(10s);
  EXPECT_EQ(said(), 3);
}

TEST_F(host_pods_test, replaces_a_pod_on_a_dead_node_within_three_seconds_of_the_loss_of_its_host) {
  run_for(10s);
  cluster.cut_off(uid_of("job-hosts-1-1"));
  run_for(900ms);
  ASSERT_EQ(cluster.sights()[1].standing, host_standing::away);
  run_for(3s);
  EXPECT_NE(uid_of("job-hosts-1-2"), "");
  EXPECT_THAT(told, Contains(HasSubstr("deleted pod job-hosts-1-1: job-hosts-1-2 came after it")));
  EXPECT_NE(uid_of("job-hosts-1-1"), "") << "nobody can say that it has ended";
  run_for(10s);
  EXPECT_EQ(cluster.hosts[1].uid, uid_of("job-hosts-1-2"));
  cluster.come_back(uid_of("job-hosts-1-1"));
  run_for(10s);
  EXPECT_EQ(uid_of("job-hosts-1-1"), "");
  EXPECT_EQ(cluster.created, 3U);
}

TEST_F(host_pods_test, says_who_leads_where_there_may_be_two_and_until_the_server_knows) {
  run_for(5s);
  EXPECT_EQ(cluster.leader, "") << "there is one";
  host_pods of_two{requests,
                   client,
                   {.tell = [](const auto&) {},
                    .warn = [this](const auto& text) { warned.push_back(text); },
                    .has_standby = true}};
  cluster.is_away = true;
  of_two.pass();
  EXPECT_EQ(cluster.leader, "");
  cluster.is_away = false;
  cluster.pass(3s);
  of_two.pass();
  EXPECT_EQ(cluster.leader, "control");
  cluster.leader = "another";
  cluster.pass(3s);
  of_two.pass();
  EXPECT_EQ(cluster.leader, "another") << "it was told once: a later root has told since";
}

/// Of a control pod that another one follows, all hosts are lost.
TEST_F(host_pods_test, leaves_the_pods_alone_while_nobody_knows_whether_they_are_its_own) {
  run_for(10s);
  cluster.cut_off(uid_of("job-hosts-1-1"));
  has_begun = false; // the job says nothing any more
  pods.hosts_are({});
  pods.pause();
  run_for(60s);
  EXPECT_EQ(cluster.created, 2U);
  EXPECT_THAT(told, Each(Not(HasSubstr("deleted"))));
  has_begun = true;
  run_for(5s);
  EXPECT_NE(uid_of("job-hosts-1-2"), "");
}

TEST_F(host_pods_test, makes_as_many_as_are_wanted_by_now) {
  run_for(10s);
  cluster.wanted = 4;
  run_for(3s);
  EXPECT_EQ(cluster.created, 4U);
  cluster.wanted = 1;
  run_for(10s);
  EXPECT_THAT(cluster.pods, SizeIs(1));
}

/// A pod that goes with all that the job has is made no more.
TEST_F(host_pods_test, lets_one_pod_be_evicted_at_a_time_and_none_while_another_one_comes) {
  has_begun = false;
  run_for(5s);
  EXPECT_EQ(cluster.stay, 0U) << "there is nothing to lose";
  has_begun = true;
  run_for(10s);
  EXPECT_EQ(cluster.stay, 1U);
  cluster.evict(uid_of("job-hosts-1-1"));
  std::uint32_t least = 2, most = 0;
  for (const auto end = cluster.now + 20s; cluster.now < end; cluster.pass(100ms)) {
    look();
    least = std::min(least, cluster.stay.value_or(0));
    most = std::max(most, cluster.stay.value_or(0));
  }
  EXPECT_EQ(least, 1U) << "the other one";
  EXPECT_EQ(most, 2U) << "both, when its successor has come";
  EXPECT_EQ(cluster.stay, 1U);
}

TEST_F(host_pods_test, says_that_it_may_not_guard_the_pods_and_goes_on) {
  cluster.lacks_budget_right = true;
  run_for(10s);
  EXPECT_THAT(pods.held_up_by(), SizeIs(1));
  cluster.lacks_budget_right = false;
  run_for(10s);
  EXPECT_EQ(cluster.stay, 1U);
  EXPECT_THAT(warned,
              Contains(HasSubstr("lacks the right to patch poddisruptionbudgets.policy 'job-hosts'")));
  EXPECT_THAT(pods.held_up_by(), IsEmpty());
  EXPECT_FALSE(pods.end());
}

TEST_F(host_pods_test, looks_at_what_is_wanted_before_it_makes_pods) {
  run_for(10s);
  cluster.wanted = 0;
  cluster.remove(uid_of("job-hosts-0-1"));
  run_for(300ms);
  EXPECT_EQ(cluster.created, 2U);
}

TEST_F(host_pods_test, complains_once_and_goes_on_when_it_can) {
  run_for(10s);
  cluster.is_away = true;
  cluster.cut_off(uid_of("job-hosts-0-1"));
  run_for(10min);
  EXPECT_THAT(warned, SizeIs(1));
  EXPECT_EQ(cluster.created, 2U);
  cluster.is_away = false;
  run_for(5s);
  EXPECT_NE(uid_of("job-hosts-0-2"), "");
}

TEST_F(host_pods_test, goes_on_with_fewer_where_there_is_no_room_and_tries_again) {
  cluster.refusal = 1;
  run_for(5min);
  EXPECT_THAT(warned, SizeIs(1));
  EXPECT_THAT(warned, Contains(HasSubstr("exceeded quota")));
  EXPECT_THAT(pods.held_up_by(), ElementsAre(HasSubstr("exceeded quota")));
  EXPECT_FALSE(pods.end());
  cluster.refusal = 0;
  run_for(61s);
  EXPECT_EQ(cluster.created, 2U);
  EXPECT_THAT(pods.held_up_by(), IsEmpty());
}

TEST_F(host_pods_test, asks_less_and_less_often_where_there_is_no_room) {
  cluster.refusal = 1;
  run_for(10min);
  const auto asked = cluster.refusals;
  run_for(10min);
  EXPECT_LE(cluster.refusals - asked, 2U * 11U) << "once a minute a slot";
}

TEST_F(host_pods_test, trains_on_without_a_right_and_makes_pods_when_it_is_given) {
  cluster.lacks_right = true;
  run_for(10min);
  EXPECT_THAT(warned, ElementsAre(HasSubstr("lacks the right to create pods: add the rule")));
  EXPECT_FALSE(pods.end());
  cluster.lacks_right = false;
  run_for(61s);
  EXPECT_EQ(cluster.created, 2U);
}

TEST_F(host_pods_test, ends_a_job_that_has_not_begun_where_a_right_is_missing) {
  has_begun = false;
  cluster.lacks_right = true;
  run_for(29s);
  EXPECT_FALSE(pods.end());
  run_for(10s);
  ASSERT_TRUE(pods.end());
  EXPECT_EQ(pods.end()->exit_code, 2);
  EXPECT_THAT(pods.end()->why, HasSubstr(R"({apiGroups: [""], resources: ["pods"], verbs: ["create"]})"));
}

TEST_F(host_pods_test, says_what_pods_wait_for_and_ends_a_job_that_waits_for_what_is_hopeless) {
  has_begun = false;
  pod_record waiting{.name = "job-hosts-0-1", .uid = "u", .owner = "owner", .incarnation = 1};
  waiting.waits_for = "ErrImagePull: no such image";
  waiting.cannot_start = true;
  cluster.wanted = 1;
  pods.on_news(pod_listing{{waiting}, cluster.now});
  for (const auto end = cluster.now + 61s; cluster.now < end; cluster.pass(100ms)) pods.pass();
  EXPECT_THAT(warned, ElementsAre(HasSubstr("pod job-hosts-0-1 does not run: ErrImagePull: no such image")));
  EXPECT_EQ(pods.held_up_by(), warned);
  ASSERT_TRUE(pods.end());
  EXPECT_EQ(pods.end()->exit_code, 2);
}

/// Before the job has begun as well: that may be what it waits for.
TEST_F(host_pods_test, says_which_pods_run_and_do_not_reach_the_root) {
  has_begun = false;
  cluster.wanted = 1;
  pods.on_news(pod_listing{{test::pod(0, 1)}, cluster.now});
  const auto pass_for = [this](std::chrono::milliseconds time) {
    for (const auto end = cluster.now + time; cluster.now < end; cluster.pass(100ms)) pods.pass();
  };
  pass_for(1min);
  EXPECT_THAT(warned, IsEmpty()) << "nobody says yet who has come";
  pods.hosts_come({{0, {host_standing::joining, "10.0.0.1"}}});
  pass_for(1min);
  EXPECT_THAT(warned, IsEmpty());
  pods.hosts_come({});
  pass_for(31s);
  EXPECT_THAT(warned, ElementsAre(HasSubstr("pod job-hosts-0-1 (10.0.0.1) has run for 30 s")));
  EXPECT_EQ(pods.held_up_by(), warned);
  EXPECT_FALSE(pods.end());
  pods.hosts_are({{0, {host_standing::there, "10.0.0.1"}}});
  pass_for(1s);
  EXPECT_THAT(pods.held_up_by(), IsEmpty());
}

TEST_F(host_pods_test, ends_a_job_whose_namespace_is_deleted_and_makes_no_pod_any_more) {
  run_for(10s);
  cluster.ends = true;
  cluster.remove(uid_of("job-hosts-0-1"));
  run_for(1s);
  ASSERT_TRUE(pods.end());
  EXPECT_THAT(pods.end()->why, HasSubstr("the namespace is being terminated"));
  cluster.ends = false;
  const auto asked = cluster.refusals;
  run_for(1min);
  EXPECT_EQ(cluster.refusals, asked);
  EXPECT_EQ(cluster.created, 2U);
}

} // namespace
} // namespace dlrun::kubernetes
