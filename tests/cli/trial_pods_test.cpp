// What of a job's pods Kubernetes is asked beforehand, and what its answers mean; of whole jobs:
// tests/integration/submit_test.py.
#include "cli/trial_pods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class trial_pods : public testing::Test {
protected:
  json pod(std::size_t at) const { return json::parse(trial_pods_of(wanted).at(at).manifest); }

  pods_wish wanted{.name = "x", .name_space = "team-a", .image = "registry/dlrun:2", .job_file = "name: x\n"};
};

TEST_F(trial_pods, are_one_of_each_kind) {
  EXPECT_THAT(trial_pods_of(wanted), SizeIs(2));
  EXPECT_EQ(pod(0)["metadata"]["labels"]["app.kubernetes.io/component"], "control");
  EXPECT_EQ(pod(1)["metadata"]["labels"]["app.kubernetes.io/component"], "host");
  wanted.preemptible_class = "low";
  EXPECT_THAT(trial_pods_of(wanted), SizeIs(3));
  EXPECT_EQ(pod(2)["spec"]["priorityClassName"], "low");
  EXPECT_FALSE(pod(1)["spec"].contains("priorityClassName"));
}

TEST_F(trial_pods, are_of_those_for_ps_shards_too) {
  wanted.ps_hosts = 2;
  wanted.ps_memory = "3Gi";
  ASSERT_THAT(trial_pods_of(wanted), SizeIs(3));
  EXPECT_EQ(pod(2)["metadata"]["labels"]["dlrun/group"], "ps");
  EXPECT_EQ(pod(2)["spec"]["containers"][0]["resources"]["limits"]["memory"], "3Gi");
}

TEST_F(trial_pods, are_in_nobodys_way) {
  for (const std::size_t at : {0, 1}) {
    EXPECT_FALSE(pod(at)["metadata"].contains("name"));
    EXPECT_FALSE(pod(at)["metadata"].contains("ownerReferences"));
    EXPECT_EQ(pod(at)["metadata"]["namespace"], "team-a");
  }
  wanted.name_space.clear();
  EXPECT_FALSE(pod(0)["metadata"].contains("namespace"));
}

TEST_F(trial_pods, have_an_account_where_one_is_there_before_the_job) {
  EXPECT_FALSE(pod(0)["spec"].contains("serviceAccountName"));
  wanted.service_account = "ours";
  EXPECT_EQ(pod(0)["spec"]["serviceAccountName"], "ours");
}

TEST_F(trial_pods, of_hosts_are_as_the_control_pod_would_make_them) {
  wanted.priority_class = "high";
  wanted.memory = "4Gi";
  EXPECT_EQ(pod(1)["spec"]["priorityClassName"], "high");
  const auto container = pod(1)["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "registry/dlrun:2");
  EXPECT_EQ(container["resources"]["limits"]["memory"], "4Gi");
}

TEST_F(trial_pods, tell_nothing_secret) {
  wanted.key = security::secret_text{"5ec2e7"};
  for (const auto& one : trial_pods_of(wanted)) EXPECT_THAT(one.manifest, Not(HasSubstr("5ec2e7")));
}

TEST(end_of_trial, is_a_refusal_unless_that_may_change_or_nobody_was_asked) {
  EXPECT_EQ(end_of_trial(0, "Warning: exceeded quota"), trial_end::taken);
  const std::string server =
      "Error from server (Forbidden): error when creating \"STDIN\": pods \"x-\" is forbidden: ";
  EXPECT_EQ(end_of_trial(1, server + "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
            trial_end::no_room);
  EXPECT_EQ(end_of_trial(1,
                         "Error from server (Forbidden): error when creating \"STDIN\": pods is forbidden: "
                         "User \"jane\" cannot create resource \"pods\" in API group \"\" in the "
                         "namespace \"team-a\""),
            trial_end::not_tried);
  EXPECT_EQ(end_of_trial(1,
                         "Error from server (BadRequest): error when creating \"STDIN\": admission webhook "
                         "\"a.b\" does not support dry run"),
            trial_end::not_tried);
  for (const auto* other :
       {"violates PodSecurity \"restricted:latest\": seccompProfile",
        "maximum memory usage per Container is 1Gi, but limit is 4Gi",
        "failed quota: q: must specify limits.cpu", "no PriorityClass with name low was found"})
    EXPECT_EQ(end_of_trial(1, server + other), trial_end::refused) << other;
  EXPECT_EQ(end_of_trial(1, ""), trial_end::refused);
  for (const auto* away : {"Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout",
                           "The connection to the server 10.0.0.1:6443 was refused"})
    EXPECT_EQ(end_of_trial(1, away), trial_end::unanswered) << away;
}

} // namespace
} // namespace dlrun::cli
