#include "kubernetes/pod_starts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr auto no_node = "0/3 nodes are available: 3 Insufficient cpu";
constexpr auto no_image = "ImagePullBackOff: Back-off pulling image \"x\"";

class pod_starts_test : public testing::Test {
protected:
  pod_record& pod(const std::string& name) {
    auto& one = pods["uid-" + name];
    one.name = name;
    one.uid = "uid-" + name;
    return one;
  }
  void wait(const std::string& name, const std::string& what, bool cannot_start = false) {
    auto& one = pod(name);
    one.waits_for = what;
    one.cannot_start = cannot_start;
  }
  std::vector<std::string> look() { return starts.look(pods, now); }

  pod_starts starts;
  std::map<std::string, pod_record> pods{};
  time_point now{1h};
};

TEST_F(pod_starts_test, a_pod_that_waits_for_a_node_is_told_once_after_a_minute_with_the_schedulers_words) {
  wait("a", no_node);
  EXPECT_THAT(look(), IsEmpty());
  now += 59s;
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(starts.told(), IsEmpty());
  now += 1s;
  EXPECT_THAT(look(), ElementsAre(fmt::format("pod a does not run: {}", no_node)));
  now += 1h;
  wait("a", "0/4 nodes are available: 4 Insufficient cpu");
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(starts.told(), ElementsAre(HasSubstr("0/4 nodes"))) << "as it is now";
  EXPECT_FALSE(starts.end(false)) << "a node may come";
}

TEST_F(pod_starts_test, pods_that_wait_for_the_same_are_told_together) {
  wait("a", no_node);
  wait("b", no_node);
  wait("c", "");
  look();
  now += 60s;
  EXPECT_THAT(look(), ElementsAre(HasSubstr("2 pods do not run, a is one: 0/3 nodes"),
                                  HasSubstr("pod c does not run: Kubernetes does not say why")));
}

TEST_F(pod_starts_test, pods_that_run_or_go_or_are_gone_wait_no_more) {
  for (const auto* name : {"a", "b", "c", "d"}) wait(name, no_node);
  look();
  now += 60s;
  look();
  pod("a").runs = true;
  pod("b").is_going = true;
  pod("c").phase = pod_phase::failed;
  pods.erase("uid-d");
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(starts.told(), IsEmpty());
}

TEST_F(pod_starts_test, one_that_was_started_and_ended_waits_for_its_kubelet_and_is_not_told) {
  wait("a", "CrashLoopBackOff: back-off 10s");
  pod("a").ends = 1;
  look();
  now += 1h;
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(pod_starts_test, an_image_that_no_pod_ever_ran_ends_a_job_that_waits_for_pods) {
  wait("a", no_image, true);
  wait("b", no_node);
  look();
  now += 59s;
  look();
  EXPECT_FALSE(starts.end(false));
  now += 1s;
  look();
  ASSERT_TRUE(starts.end(false));
  EXPECT_EQ(starts.end(false)->exit_code, 2);
  EXPECT_THAT(starts.end(false)->why, HasSubstr("cannot be started: a: ImagePullBackOff"));
  EXPECT_FALSE(starts.end(true)) << "it trains without them";
}

TEST_F(pod_starts_test, an_image_that_a_pod_ran_ends_no_job) {
  pod("a").runs = true;
  look();
  pods.clear();
  wait("b", no_image, true);
  look();
  now += 1h;
  EXPECT_THAT(look(), ElementsAre(HasSubstr("pod b does not run: ImagePullBackOff")));
  EXPECT_FALSE(starts.end(false));
}

TEST_F(pod_starts_test, what_gets_right_within_a_minute_is_no_end) {
  for (int i = 0; i < 10; ++i, now += 50s) {
    wait("a", no_image, i % 2 == 0);
    look();
    EXPECT_FALSE(starts.end(false));
  }
}

TEST(start_rules, are_what_the_template_says_where_it_says_something_sound) {
  const auto patience = [](const std::string& text) {
    const nlohmann::json annotations{{"dlrun/pending-patience-s", text}};
    return start_rules_of({{"metadata", {{"annotations", annotations}}}}).patience;
  };
  EXPECT_EQ(patience("5"), 5s);
  EXPECT_EQ(patience("86400"), 24h);
  for (const auto* text : {"", "0", "86401", "-1", "1.5", "x"}) EXPECT_EQ(patience(text), 60s) << text;
  EXPECT_EQ(start_rules_of(nlohmann::json::object()).patience, 60s);
}

} // namespace
} // namespace dlrun::kubernetes
