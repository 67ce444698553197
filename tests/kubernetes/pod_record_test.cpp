#include "kubernetes/pod_record.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

json whole_pod() {
  return json::parse(R"({
    "metadata": {"name": "job-hosts-2-7", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z",
      "labels": {"dlrun/slot": "2", "dlrun/incarnation": "7", "other": "x"},
      "ownerReferences": [{"uid": "other"}, {"uid": "owner", "controller": true}]},
    "spec": {"containers": [{"name": "dlrun", "resources": {"limits": {"memory": "2Gi"}}}]},
    "status": {"phase": "Running", "podIP": "10.0.0.9",
      "containerStatuses": [{"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}})");
}

TEST(pod_record, keeps_what_matters_of_a_pod) {
  EXPECT_EQ(read_pod(whole_pod()).value(), (pod_record{.name = "job-hosts-2-7",
                                                       .uid = "u1",
                                                       .owner = "owner",
                                                       .address = "10.0.0.9",
                                                       .slot = 2,
                                                       .incarnation = 7,
                                                       .phase = pod_phase::running,
                                                       .is_going = true,
                                                       .runs = false,
                                                       .is_held_back = true,
                                                       .restarts = 3,
                                                       .ends = 4,
                                                       .is_out_of_memory = true,
                                                       .memory = std::uint64_t{2} << 30,
                                                       .reason = "CrashLoopBackOff",
                                                       .waits_for = "CrashLoopBackOff"}));
}

TEST(pod_record, says_why_a_pod_failed_and_whether_its_container_runs) {
  auto pod = whole_pod();
  pod["status"] = json::parse(R"({"phase": "Failed", "reason": "Evicted"})");
  EXPECT_EQ(read_pod(pod)->phase, pod_phase::failed);
  EXPECT_EQ(read_pod(pod)->reason, "Evicted");
  pod["status"] = json::parse(R"({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]})");
  EXPECT_TRUE(read_pod(pod)->runs);
  EXPECT_FALSE(read_pod(pod)->is_held_back);
  for (const auto& [text, phase] : {std::pair{"Pending", pod_phase::pending},
                                    {"Succeeded", pod_phase::succeeded},
                                    {"Unknown", pod_phase::running}}) {
    pod["status"] = {{"phase", text}};
    EXPECT_EQ(read_pod(pod)->phase, phase);
  }
}

TEST(pod_record, says_whether_it_was_evicted) {
  auto pod = whole_pod();
  for (const auto& [type, status, is_disrupted] : {std::tuple{"DisruptionTarget", "True", true},
                                                   {"DisruptionTarget", "False", false},
                                                   {"Ready", "True", false}}) {
    pod["status"]["conditions"] = json::array({{{"type", type}, {"status", status}}});
    EXPECT_EQ(read_pod(pod)->is_disrupted, is_disrupted) << type << " " << status;
  }
}

TEST(pod_record, counts_an_end_once_whether_the_container_is_started_again_or_not) {
  const auto after = [](const char* state) {
    auto pod = whole_pod();
    pod["status"]["containerStatuses"][0] = json::parse(state);
    return read_pod(pod).value();
  };
  const auto ended = after(R"({"restartCount": 1, "state": {"terminated": {"reason": "OOMKilled"}},
                               "lastState": {"terminated": {"reason": "Error"}}})");
  EXPECT_EQ(ended.ends, 2U);
  EXPECT_TRUE(ended.is_out_of_memory);
  const auto runs = after(R"({"restartCount": 2, "state": {"running": {}},
                              "lastState": {"terminated": {"reason": "OOMKilled"}}})");
  EXPECT_EQ(runs.ends, 2U);
  EXPECT_TRUE(runs.is_out_of_memory);
  const auto other = after(R"({"restartCount": 2, "state": {"terminated": {"reason": "Error"}},
                               "lastState": {"terminated": {"reason": "OOMKilled"}}})");
  EXPECT_EQ(other.ends, 3U);
  EXPECT_FALSE(other.is_out_of_memory);
  const auto first = after(R"({"restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}})");
  EXPECT_EQ(first.ends, 0U);
}

TEST(pod_record, says_that_its_node_computes_other_bits_while_that_is_how_its_container_ended_last) {
  auto pod = whole_pod();
  pod["spec"]["nodeName"] = "node7";
  EXPECT_EQ(read_pod(pod)->node, "node7");
  EXPECT_FALSE(read_pod(pod)->has_other_bits);
  auto& container = pod["status"]["containerStatuses"][0];
  container["lastState"]["terminated"]["exitCode"] = 4;
  EXPECT_TRUE(read_pod(pod)->has_other_bits);
  container["state"] = {{"terminated", {{"exitCode", 1}}}};
  EXPECT_FALSE(read_pod(pod)->has_other_bits);
}

TEST(pod_record, says_what_a_pod_waits_for_that_does_not_run) {
  auto pod = whole_pod();
  pod["status"] = json::parse(R"({"phase": "Pending", "conditions": [{"type": "Initialized", "message": "x"},
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]})");
  EXPECT_EQ(read_pod(pod)->waits_for, "0/3 nodes are available");
  EXPECT_FALSE(read_pod(pod)->cannot_start);
  pod["status"] =
      json::parse(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]})");
  EXPECT_EQ(read_pod(pod)->waits_for, "ErrImagePull: no such image");
  EXPECT_TRUE(read_pod(pod)->cannot_start);
  for (const auto* other : {"ContainerCreating", "CrashLoopBackOff", "PodInitializing"}) {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = other;
    EXPECT_FALSE(read_pod(pod)->cannot_start) << other;
  }
}

TEST(pod_record, is_of_no_pod_that_is_not_marked_as_one_of_a_host) {
  for (const auto* label : {slot_label, incarnation_label})
    for (const auto& strange :
         {json{}, json{5}, json{""}, json{"-1"}, json{"1x"}, json{"4294967296"}, json::array()}) {
      auto pod = whole_pod();
      pod["metadata"]["labels"][label] = strange;
      EXPECT_EQ(read_pod(pod), std::nullopt) << strange;
    }
  for (const auto* key : {"name", "uid"}) {
    auto pod = whole_pod();
    pod["metadata"].erase(key);
    EXPECT_EQ(read_pod(pod), std::nullopt);
  }
}

TEST(pod_record, is_read_from_any_object_without_harm) {
  for (const auto* text : {"null", "5", "[]", "{}", R"({"metadata": 5})", R"({"metadata": {"labels": []}})"})
    EXPECT_EQ(read_pod(json::parse(text)), std::nullopt) << text;
  for (const auto* key : {"status", "metadata/ownerReferences", "spec"})
    for (const auto& strange : {json{}, json{5}, json{"x"}, json::array({5}), json{{"a", 5}}}) {
      auto pod = whole_pod();
      pod[json::json_pointer{std::string{"/"} + key}] = strange;
      EXPECT_TRUE(read_pod(pod)) << key << strange;
    }
  auto pod = whole_pod();
  pod["status"]["containerStatuses"] = json::parse(R"([5, {"state": 5, "restartCount": -1}])");
  EXPECT_EQ(read_pod(pod)->restarts, 0U);
  pod["status"]["reason"] = std::string(100'000, 'x') + "\n\x1b";
  pod["status"]["conditions"] = json::array(
      {5, {{"type", "PodScheduled"}, {"status", "False"}, {"message", std::string(100'000, 'x')}}});
  EXPECT_LE(sizeof(pod_record) + read_pod(pod)->reason.size() + read_pod(pod)->waits_for.size(), 1000U);
}

} // namespace
} // namespace dlrun::kubernetes
