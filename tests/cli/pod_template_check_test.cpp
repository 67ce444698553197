#include "cli/pod_template_check.hpp"

#include "cli/kubernetes_objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class pod_template_check : public testing::Test {
protected:
  pod_template_check() {
    wanted.ps_hosts = 1;
    for (const auto& one : kubernetes_objects(wanted))
      if (one.at("kind") == "ConfigMap" && one.at("data").contains(pod_template_key)) files = one.at("data");
  }

  json written(const char* key) const { return json::parse(files.at(key).get<std::string>()); }
  /// Of the template with something else at a place.
  std::string complaint(const std::string& at, const json& value) const {
    auto changed = written(pod_template_key);
    changed[json::json_pointer{at}] = value;
    const auto sound = check_pod_template(changed, "x", "/etc/dlrun/pod.json");
    return sound ? "" : sound.error().message;
  }

  pods_wish wanted{.name = "x", .name_space = "", .image = "registry/dlrun:2", .job_file = "name: x\n"};
  json files;
};

TEST_F(pod_template_check, takes_what_is_written) {
  for (const auto* key : {pod_template_key, ps_template_key})
    EXPECT_TRUE(check_pod_template(written(key), "x", key)) << key;
}

TEST_F(pod_template_check, takes_what_an_overlay_may_change) {
  EXPECT_EQ(complaint("/spec/priorityClassName", "low"), "");
  EXPECT_EQ(complaint("/spec/containers/0/resources/limits/memory", "3Gi"), "");
  EXPECT_EQ(complaint("/spec/containers/0/env/-", {{"name", "A"}, {"value", "b"}}), "");
  EXPECT_EQ(complaint("/spec/containers/-", {{"name", "beside"}}), "");
  EXPECT_EQ(complaint("/spec/volumes/-", {{"name", "more"}, {"emptyDir", json::object()}}), "");
  EXPECT_EQ(complaint("/spec/containers/0/args/-", "--preemptible"), "");
  EXPECT_EQ(complaint("/metadata/annotations/a", "b"), "");
}

TEST_F(pod_template_check, refuses_what_would_never_be_a_host_of_the_job_and_names_it) {
  struct change {
    const char* at;
    json value;
    const char* key;
  };
  for (const auto& [at, value, key] :
       std::vector<change>{{"/metadata/name", "mine", "metadata.name"},
                           {"/metadata/ownerReferences", json::array(), "metadata.ownerReferences"},
                           {"/spec/restartPolicy", "Never", "spec.restartPolicy"},
                           {"/spec/containers", nullptr, "spec.containers[0].name"},
                           {"/spec/containers/0/name", "mine", "spec.containers[0].name"},
                           {"/spec/containers/0/command", {"sh", "-c"}, "spec.containers[0].command"},
                           {"/spec/containers/0/args", nullptr, "spec.containers[0].args"},
                           {"/spec/containers/0/args/0", "train", "spec.containers[0].args"},
                           {"/spec/containers/0/args/2", "y:7700",
                            "spec.containers[0].args: do not begin with those of an agent of job 'x'"},
                           {"/spec/volumes", json::array(), "spec.volumes: there is no secret 'key'"},
                           {"/spec/volumes/1",
                            {{"name", "run"}, {"hostPath", {{"path", "/"}}}},
                            "spec.volumes: there is no emptyDir 'run'"},
                           {"/spec/containers/0/volumeMounts/1/mountPath", "/tmp",
                            "spec.containers[0].volumeMounts: 'run'"}}) {
    EXPECT_THAT(complaint(at, value), HasSubstr(key)) << at;
    EXPECT_THAT(complaint(at, value), HasSubstr("'/etc/dlrun/pod.json': ")) << at;
    EXPECT_THAT(complaint(at, value), HasSubstr("'dlrun manifests'")) << at;
  }
}

} // namespace
} // namespace dlrun::cli
