#include "kubernetes/job_wish.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

class job_wish_test : public testing::Test {
protected:
  answer<bool> ask(const base::http_answer& told) {
    api.answer = [told](const base::http_request&) { return told; };
    auto client = api.make_client();
    return is_to_stop(client, "job", "run", api.in(1s));
  }
  answer<bool> ask(const json& job) { return ask(base::http_answer{200, job.dump()}); }
  /// A Job whose run folder is in a claim.
  static json claimed() {
    return {{"metadata", {{"name", "job"}}},
            {"spec",
             {{"template",
               {{"spec",
                 {{"volumes", json::array({{{"name", "files"}, {"configMap", json::object()}},
                                           {{"name", "run"},
                                            {"persistentVolumeClaim", {{"claimName", "runs"}}}}})}}}}}}}};
  }

  played_api api;
};

TEST_F(job_wish_test, a_job_goes_on_in_another_pod) {
  const auto stops = ask(claimed());
  ASSERT_TRUE(stops.has_value());
  EXPECT_FALSE(*stops);
  auto goes_on = claimed();
  goes_on["spec"]["suspend"] = false;
  EXPECT_FALSE(*ask(goes_on));
  EXPECT_THAT(api.asked(), testing::Each("GET /apis/batch/v1/namespaces/team-a/jobs/job"));
}

TEST_F(job_wish_test, a_job_stops_that_is_suspended_deleted_or_gone) {
  auto suspended = claimed();
  suspended["spec"]["suspend"] = true;
  EXPECT_TRUE(*ask(suspended));
  auto deleted = claimed();
  deleted["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z";
  EXPECT_TRUE(*ask(deleted));
  EXPECT_TRUE(*ask(refused(404, "jobs.batch \"job\" not found")));
}

TEST_F(job_wish_test, a_job_stops_whose_run_goes_with_its_pod) {
  auto in_pod = claimed();
  in_pod["spec"]["template"]["spec"]["volumes"][1] = {{"name", "run"}, {"emptyDir", json::object()}};
  EXPECT_TRUE(*ask(in_pod));
  EXPECT_TRUE(*ask(json{{"spec", json::object()}}));
}

TEST_F(job_wish_test, a_job_goes_on_whose_journal_is_in_an_etcd) {
  json job{{"metadata", {{"name", "job"}, {"annotations", {{journal_annotation, journal_in_etcd}}}}},
           {"spec", json::object()}};
  EXPECT_FALSE(*ask(job));
  job["spec"]["suspend"] = true;
  EXPECT_TRUE(*ask(job));
}

TEST_F(job_wish_test, nobody_knows_where_the_server_does_not_say) {
  EXPECT_FALSE(ask(refused(403, "jobs.batch is forbidden")).has_value());
  const auto begun = api.now;
  EXPECT_FALSE(ask(refused(503, "busy")).has_value());
  EXPECT_LE(api.now - begun, 1s);
}

} // namespace
} // namespace dlrun::kubernetes
