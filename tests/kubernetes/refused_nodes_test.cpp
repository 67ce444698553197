#include "kubernetes/refused_nodes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

pod_record ended_on(const std::string& node) {
  pod_record made{.name = "job-hosts-0-1", .uid = "u"};
  made.node = node;
  made.has_other_bits = true;
  return made;
}

TEST(refused_nodes, are_those_where_a_container_ended_for_its_bits_and_no_others) {
  refused_nodes nodes;
  auto sound = ended_on("a");
  sound.has_other_bits = false;
  nodes.see(sound);
  nodes.see(ended_on(""));
  EXPECT_THAT(nodes.nodes(), IsEmpty());
  EXPECT_EQ(nodes.told(), "");
  nodes.see(ended_on("b"));
  nodes.see(sound);
  EXPECT_THAT(nodes.nodes(), ElementsAre("b"));
  EXPECT_THAT(nodes.told(), HasSubstr("no pod of a host is made for node b, which would compute other bits"));
}

TEST(refused_nodes, are_learnt_from_pods_that_keep_off_them) {
  refused_nodes nodes;
  auto next = ended_on("c");
  next.has_other_bits = false;
  next.keeps_off = {"a", "b"};
  nodes.see(next);
  EXPECT_THAT(nodes.nodes(), ElementsAre("a", "b"));
}

TEST(refused_nodes, are_told_in_a_line_however_many_they_are) {
  refused_nodes nodes;
  for (int i = 10; i < 30; ++i) nodes.see(ended_on(fmt::format("n{}", i)));
  EXPECT_THAT(nodes.told(), HasSubstr("nodes n10, n11, n12, n13, n14, n15, n16, n17 and 12 more, which"));
}

TEST(refused_nodes, are_kept_off_as_kubernetes_takes_it) {
  json pod{{"spec", json::object()}};
  keep_off({}, pod);
  EXPECT_EQ(pod, (json{{"spec", json::object()}}));
  keep_off({"a", "b"}, pod);
  EXPECT_EQ(pod["spec"]["affinity"], json::parse(R"({"nodeAffinity":
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
      {"key": "metadata.name", "operator": "NotIn", "values": ["a"]},
      {"key": "metadata.name", "operator": "NotIn", "values": ["b"]}]}]}}})"));
  EXPECT_THAT(kept_off(pod), ElementsAre("a", "b"));
}

/// Any one of the terms has to hold.
TEST(refused_nodes, are_kept_off_beside_what_the_template_wants) {
  auto pod = json::parse(R"({"spec": {"affinity": {"podAffinity": {"x": 1}, "nodeAffinity":
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]},
      {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2"]}]}]}}}}})");
  keep_off({"a"}, pod);
  EXPECT_EQ(pod["spec"]["affinity"]["podAffinity"]["x"], 1);
  const json::json_pointer terms{
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"};
  ASSERT_EQ(pod[terms].size(), 2U);
  for (const auto& term : pod[terms]) {
    EXPECT_EQ(term["matchExpressions"][0]["key"], "zone");
    EXPECT_EQ(term["matchFields"][0]["values"], json::array({"a"}));
  }
}

TEST(refused_nodes, of_a_pod_that_says_nothing_sound_are_none) {
  for (const auto* text : {"{}", R"({"spec": {"affinity": 1}})", R"({"spec": {"affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields":
          [{"key": "metadata.name", "operator": "In", "values": ["a"]}, 7]}]}}}}})"})
    EXPECT_THAT(kept_off(json::parse(text)), IsEmpty()) << text;
}

} // namespace
} // namespace dlrun::kubernetes
