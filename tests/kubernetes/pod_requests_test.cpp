#include "kubernetes/pod_requests.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

constexpr auto get_pods_object = "GET /api/v1/namespaces/team-a/configmaps/job-pods";
constexpr auto patch_pods_object = "PATCH /api/v1/namespaces/team-a/configmaps/job-pods?fieldManager=dlrun";
constexpr auto get_job_line = "GET /apis/batch/v1/namespaces/team-a/jobs/job";
constexpr auto get_own_pod = "GET /api/v1/namespaces/team-a/pods/control";
constexpr auto make_pod = "POST /api/v1/namespaces/team-a/pods?fieldManager=dlrun";
constexpr auto get_made_pod = "GET /api/v1/namespaces/team-a/pods/job-hosts-1-2";

class pod_requests_test : public testing::Test {
protected:
  pod_requests_test() {
    api.answer = [this](const base::http_request& asked) {
      const auto line = line_of(asked);
      if (refusals.contains(line)) return refusals.at(line);
      if (line == make_pod) {
        auto made = json::parse(asked.body);
        made["metadata"]["uid"] = "new";
        return base::http_answer{201, made.dump()};
      }
      return base::http_answer{200, objects.contains(line) ? objects.at(line).dump() : "{}"};
    };
    objects[get_pods_object] = json::parse(
        R"({"metadata": {"uid": "u1", "ownerReferences": [{"uid": "j1"}]}, "data": {"hosts": "3"}})");
    objects[get_job_line] = {{"metadata", {{"uid", "j1"}}}};
    objects[get_own_pod] = json::parse(
        R"({"spec": {"schedulerName": "volcano", "nodeSelector": {"disk": "fast"}, "containers": [{"image": "registry/dlrun:2"}]}})");
  }

  time_point soon() { return api.in(10s); }
  answer<std::optional<pod_record>> create() { return requests.create({1, 2, "why"}, "u1", soon()); }

  played_api api;
  api_client client = api.make_client();
  std::map<std::string, json> objects{};
  std::map<std::string, base::http_answer> refusals{};
  pods_source source{.job = "job",
                     .own_pod = "control",
                     .pod_template = json::parse(R"({"metadata": {"labels": {"app": "x"}},
                       "spec": {"containers": [{"image": "dlrun", "args": ["agent"]}]}})")};
  pod_requests requests{client, source};
};

TEST_F(pod_requests_test, names_of_hosts_and_slots_are_one_to_one) {
  EXPECT_EQ(pod_of("job", 12, 3), "job-hosts-12-3");
  EXPECT_EQ(slot_of("job", host_of("job", 12)), pod_slot{12});
  const pod_slot ps{pod_group::ps, 1};
  EXPECT_EQ(pod_of("job", ps, 3), "job-ps-1-3");
  EXPECT_EQ(slot_of("job", host_of("job", ps)), ps);
  for (const auto* other : {"control", "job-hosts-", "job-hosts-012", "job-hosts-1-2", "job2-hosts-1",
                            "job-hosts-x", "job-ps-", "job-ps-01", "job-ps-1-2"})
    EXPECT_EQ(slot_of("job", other), std::nullopt) << other;
}

TEST_F(pod_requests_test, reads_how_many_are_wanted) {
  const auto wanted = requests.wanted(soon()).value();
  EXPECT_EQ(wanted.owner, "u1");
  EXPECT_EQ(wanted.hosts, 3U);
  EXPECT_EQ(wanted.ps, 0U);
  EXPECT_THAT(api.asked(), ElementsAre(get_pods_object));
}

TEST_F(pod_requests_test, gives_what_controls_them_to_the_job_once) {
  objects[get_pods_object]["metadata"].erase("ownerReferences");
  ASSERT_TRUE(requests.wanted(soon()));
  EXPECT_THAT(api.asked(), ElementsAre(get_pods_object, get_job_line, patch_pods_object));
  const auto owner = json::parse(api.requests.back().body)["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "j1");
  EXPECT_EQ(owner["kind"], "Job");
  EXPECT_EQ(owner["blockOwnerDeletion"], false);
  EXPECT_FALSE(owner.contains("controller"));
}

TEST_F(pod_requests_test, nothing_is_wanted_where_that_is_gone_or_going) {
  objects[get_pods_object]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(requests.wanted(soon())->owner, "");
  refusals[get_pods_object] = refused(404, "not found");
  EXPECT_EQ(requests.wanted(soon())->owner, "");
}

TEST_F(pod_requests_test, a_number_that_is_none_is_told_and_changes_nothing) {
  for (const auto* text : {"", "x", "-1", "1000", "3 ", "99999999999999999999"}) {
    objects[get_pods_object]["data"]["hosts"] = text;
    EXPECT_THAT(requests.wanted(soon()).error().message, HasSubstr("'hosts' is no number up to 999")) << text;
  }
  objects[get_pods_object].erase("data");
  EXPECT_FALSE(requests.wanted(soon()));
}

TEST_F(pod_requests_test, pods_for_ps_shards_have_a_template_of_their_own) {
  objects[get_pods_object]["data"]["ps"] = "2";
  EXPECT_THAT(requests.wanted(soon()).error().message, HasSubstr("the job has no template for them"));
  source.ps_template = json::parse(R"({"metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"image": "", "args": ["agent", "--takes", "ps_shards"]}]}})");
  pod_requests of_both{client, source};
  const auto wanted = of_both.wanted(soon()).value();
  EXPECT_EQ(wanted.ps, 2U);
  EXPECT_EQ(wanted.count(), 5U);
  EXPECT_TRUE(wanted.contains({pod_group::ps, 1}));
  EXPECT_FALSE(wanted.contains({pod_group::ps, 2}));
  const auto made = of_both.create({{pod_group::ps, 1}, 2, "why"}, "u1", soon()).value();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->slot, (pod_slot{pod_group::ps, 1}));
  const auto body = json::parse(api.requests.back().body);
  EXPECT_EQ(body["metadata"]["name"], "job-ps-1-2");
  EXPECT_EQ(body["metadata"]["labels"],
            (json{{"app", "x"}, {slot_label, "1"}, {incarnation_label, "2"}, {group_label, "ps"}}));
  EXPECT_EQ(body["spec"]["hostname"], "job-ps-1");
  EXPECT_EQ(body["spec"]["containers"][0]["image"], "registry/dlrun:2") << "of the control pod";
  EXPECT_EQ(body["spec"]["containers"][0]["args"].back(), "ps_shards");
  for (const auto* text : {"", "x", "1000"}) {
    objects[get_pods_object]["data"]["ps"] = text;
    EXPECT_THAT(of_both.wanted(soon()).error().message, HasSubstr("'ps' is no number up to 999")) << text;
  }
}

TEST_F(pod_requests_test, makes_a_pod_of_the_template_and_of_what_the_control_pod_is_made_of) {
  const auto made = create().value();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->uid, "new");
  const auto body = json::parse(api.requests.back().body);
  EXPECT_EQ(body["metadata"]["name"], "job-hosts-1-2");
  EXPECT_EQ(body["metadata"]["labels"], (json{{"app", "x"}, {slot_label, "1"}, {incarnation_label, "2"}}));
  EXPECT_EQ(body["metadata"]["ownerReferences"], json::parse(R"([{"apiVersion": "v1", "kind": "ConfigMap",
    "name": "job-pods", "uid": "u1", "controller": true, "blockOwnerDeletion": false}])"));
  EXPECT_EQ(body["spec"]["hostname"], "job-hosts-1");
  EXPECT_EQ(body["spec"]["containers"][0],
            json::parse(R"({"image": "registry/dlrun:2", "args": ["agent"]})"));
  EXPECT_EQ(body["spec"]["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(body["spec"]["schedulerName"], "volcano");
  ASSERT_TRUE(create());
  EXPECT_THAT(api.asked(), ElementsAre(get_own_pod, make_pod, make_pod));
}

/// An overlay, or a queue, changes the control pod and means all; what Kubernetes adds to a pod it
/// does by itself.
TEST_F(pod_requests_test, makes_a_pod_for_the_nodes_of_the_control_pod_and_for_those_of_the_template) {
  source.pod_template["spec"]["nodeSelector"] = {{"disk", "slow"}, {"gpu", "h200"}};
  const auto bears = [](const char* key, const char* effect) {
    return json{{"key", key}, {"operator", "Exists"}, {"effect", effect}};
  };
  const auto silent = json{{"key", "node.kubernetes.io/unreachable"}, {"tolerationSeconds", 10}};
  source.pod_template["spec"]["tolerations"] = {bears("nvidia.com/gpu", "NoSchedule"), silent};
  objects[get_own_pod]["spec"]["tolerations"] = {
      bears("nvidia.com/gpu", "NoSchedule"), bears("spot", "NoSchedule"),
      json{{"key", "node.kubernetes.io/unreachable"}, {"tolerationSeconds", 300}},
      bears("node.kubernetes.io/memory-pressure", "NoSchedule")};
  pod_requests of_both{client, source};
  ASSERT_TRUE(of_both.create({1, 2, "why"}, "u1", soon()));
  const auto spec = json::parse(api.requests.back().body)["spec"];
  EXPECT_EQ(spec["nodeSelector"], (json{{"disk", "fast"}, {"gpu", "h200"}}));
  EXPECT_EQ(spec["tolerations"],
            (json{bears("nvidia.com/gpu", "NoSchedule"), silent, bears("spot", "NoSchedule")}));
}

TEST_F(pod_requests_test,
       makes_a_pod_with_what_a_container_of_the_control_pod_has_where_the_template_has_none) {
  source.pod_template["spec"]["containers"][0].update(
      json::parse(R"({"env": [{"name": "POD_IP", "value": "own"}],
    "resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "8", "nvidia.com/gpu": "4"}}})"));
  auto& control = objects[get_own_pod]["spec"];
  control["runtimeClassName"] = "nvidia";
  control["containers"][0].update(
      json::parse(R"({"env": [{"name": "POD_IP", "value": "x"}, {"name": "MODE", "value": "y"},
    {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}], "resources": {
    "requests": {"cpu": "1", "memory": "4Gi"},
    "limits": {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": "1"}}})"));
  pod_requests of_both{client, source};
  ASSERT_TRUE(of_both.create({1, 2, "why"}, "u1", soon()));
  const auto spec = json::parse(api.requests.back().body)["spec"];
  EXPECT_EQ(spec["runtimeClassName"], "nvidia");
  EXPECT_EQ(spec["containers"][0]["resources"], json::parse(R"({"requests": {"cpu": "8", "memory": "4Gi"},
    "limits": {"cpu": "8", "memory": "4Gi", "nvidia.com/gpu": "4"}})"));
  EXPECT_EQ(spec["containers"][0]["env"],
            json::parse(R"([{"name": "POD_IP", "value": "own"}, {"name": "MODE", "value": "y"}])"));
}

TEST_F(pod_requests_test, a_pod_of_neither_has_neither) {
  objects[get_own_pod]["spec"].erase("nodeSelector");
  ASSERT_TRUE(create());
  const auto spec = json::parse(api.requests.back().body)["spec"];
  EXPECT_FALSE(spec.contains("nodeSelector"));
  EXPECT_FALSE(spec.contains("tolerations"));
}

TEST_F(pod_requests_test, gives_a_pod_more_memory_than_the_template_says) {
  const auto made = pod_object(json::parse(R"({"spec": {"containers": [{"resources": {
    "requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}}]}})"),
                               "job", {1, 2, "", std::uint64_t{3} << 29}, "u1");
  for (const auto* kind : {"requests", "limits"})
    EXPECT_EQ(made["spec"]["containers"][0]["resources"][kind], (json{{"cpu", "2"}, {"memory", "1536Mi"}}));
}

TEST_F(pod_requests_test, pods_from_a_slot_on_are_preemptible) {
  const auto pod_template = json::parse(R"({
    "metadata": {"annotations": {"dlrun/preemptible-from": "2", "dlrun/preemptible-priority-class": "low"}},
    "spec": {"priorityClassName": "high", "containers": [{"args": ["agent"]}]}})");
  for (const std::uint32_t slot : {0U, 1U, 2U, 12U}) {
    const auto spec = pod_object(pod_template, "job", {slot, 2, ""}, "u1")["spec"];
    const bool may_go = slot >= 2;
    EXPECT_EQ(spec["priorityClassName"], may_go ? "low" : "high") << slot;
    EXPECT_EQ(spec["containers"][0]["args"],
              may_go ? json({"agent", "--preemptible"}) : json::array({"agent"}))
        << slot;
  }
}

TEST_F(pod_requests_test, adopts_a_pod_that_is_there_under_the_name_and_is_the_jobs) {
  refusals[make_pod] = refused(409, "already exists");
  objects[get_made_pod] = pod_object({}, "job", {1, 2, ""}, "u1");
  objects[get_made_pod]["metadata"]["uid"] = "older";
  EXPECT_EQ(create().value()->uid, "older");
}

TEST_F(pod_requests_test, leaves_a_pod_alone_that_has_the_name_and_is_anothers) {
  refusals[make_pod] = refused(409, "already exists");
  objects[get_made_pod] = pod_object({}, "job", {1, 2, ""}, "other");
  objects[get_made_pod]["metadata"]["uid"] = "older";
  EXPECT_EQ(create().value(), std::nullopt);
  objects[get_made_pod] = {{"metadata", {{"name", "job-hosts-1-2"}, {"uid", "nobodys"}}}};
  EXPECT_EQ(create().value(), std::nullopt);
  refusals[get_made_pod] = refused(404, "not found");
  EXPECT_EQ(create().value(), std::nullopt);
}

TEST_F(pod_requests_test, lets_no_pod_be_wanted) {
  ASSERT_TRUE(requests.want_none(soon()));
  EXPECT_THAT(api.asked(), ElementsAre(patch_pods_object));
  EXPECT_EQ(json::parse(api.requests.back().body), json::parse(R"({"data": {"hosts": "0", "ps": "0"}})"));
  refusals[patch_pods_object] = refused(422, "no");
  EXPECT_FALSE(requests.want_none(soon()));
}

TEST_F(pod_requests_test, says_how_many_have_to_stay) {
  const auto line =
      "PATCH /apis/policy/v1/namespaces/team-a/poddisruptionbudgets/job-hosts?fieldManager=dlrun";
  objects[line] = json::object();
  ASSERT_TRUE(requests.guard("job-hosts", 2, soon()));
  EXPECT_THAT(api.asked(), ElementsAre(line));
  EXPECT_EQ(json::parse(api.requests.back().body), json::parse(R"({"spec": {"minAvailable": 2}})"));
  refusals[line] = refused(404, "somebody deleted it");
  EXPECT_TRUE(requests.guard("job-hosts", 2, soon()));
  refusals[line] = refused(403, "no");
  EXPECT_FALSE(requests.guard("job-hosts", 2, soon()));
}

TEST_F(pod_requests_test, a_quota_is_told_as_such) {
  refusals[make_pod] = refused(403, "exceeded quota: pods");
  EXPECT_EQ(create().error().kind, refusal_kind::no_room);
}

TEST_F(pod_requests_test, deletes_that_pod_and_no_other) {
  const delete_pod what{"job-hosts-1-2", "u7", "why"};
  const auto line = "DELETE /api/v1/namespaces/team-a/pods/job-hosts-1-2";
  EXPECT_EQ(requests.remove(what, soon()), true);
  EXPECT_EQ(line_of(api.requests.back()), line);
  EXPECT_THAT(api.requests.back().headers, Contains("Content-Type: application/json"));
  EXPECT_EQ(json::parse(api.requests.back().body),
            json::parse(R"({"apiVersion": "v1", "kind": "DeleteOptions",
    "preconditions": {"uid": "u7"}})"));
  for (const auto status : {404, 409}) {
    refusals[line] = refused(status, "not that one");
    EXPECT_EQ(requests.remove(what, soon()), false) << status;
  }
  refusals[line] = refused(422, "no");
  EXPECT_EQ(requests.remove(what, soon()).error().kind, refusal_kind::wrong);
}

} // namespace
} // namespace dlrun::kubernetes
