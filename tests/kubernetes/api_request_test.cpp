#include "kubernetes/api_request.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

const api_request patch_job{
    .verb = "patch", .group = "batch", .version = "v1", .resource = "jobs", .name = "job"};
const api_request make_event{.verb = "create", .version = "v1", .resource = "events"};

TEST(api_request, has_the_path_that_kubernetes_gives_its_kind) {
  EXPECT_EQ(path_of(patch_job, "n"), "/apis/batch/v1/namespaces/n/jobs/job?fieldManager=dlrun");
  EXPECT_EQ(path_of(make_event, "n"), "/api/v1/namespaces/n/events?fieldManager=dlrun");
  EXPECT_EQ(path_of({.verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = "j"}, "n"),
            "/apis/batch/v1/namespaces/n/jobs/j");
}

TEST(api_request, patches_by_merging) {
  EXPECT_EQ(method_of(patch_job), "PATCH");
  EXPECT_EQ(content_type_of(patch_job), "application/merge-patch+json");
  EXPECT_EQ(method_of(make_event), "POST");
  EXPECT_EQ(content_type_of(make_event), "application/json");
}

TEST(api_request, is_named_as_a_role_names_it) {
  EXPECT_EQ(text_of(patch_job), "patch jobs.batch 'job'");
  EXPECT_EQ(text_of(make_event), "create events");
}

TEST(api_request, has_the_rule_of_a_role_that_allows_it) {
  EXPECT_EQ(rule_for(patch_job),
            R"({apiGroups: ["batch"], resources: ["jobs"], resourceNames: ["job"], verbs: ["patch"]})");
  EXPECT_EQ(rule_for(make_event), R"({apiGroups: [""], resources: ["events"], verbs: ["create"]})");
}

TEST(api_request, may_be_asked_about) {
  const auto review = review_of(patch_job, "n");
  EXPECT_EQ(path_of(review, "n"),
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=dlrun");
  const auto of = nlohmann::json::parse(review.body).at("spec").at("resourceAttributes");
  EXPECT_EQ(of, (nlohmann::json{{"verb", "patch"},
                                {"group", "batch"},
                                {"version", "v1"},
                                {"resource", "jobs"},
                                {"namespace", "n"},
                                {"name", "job"}}));
}

} // namespace
} // namespace dlrun::kubernetes
