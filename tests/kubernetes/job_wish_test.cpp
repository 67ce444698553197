#include "kubernetes/job_wish.hpp"

#include "kubernetes/job_outcome.hpp"
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
  answer<job_wish> ask(const base::http_answer& told) {
    api.answer = [told](const base::http_request&) { return told; };
    auto client = api.make_client();
    return wish_of(client, "job", "run", api.in(1s));
  }
  answer<job_wish> ask(const json& job) { return ask(base::http_answer{200, job.dump()}); }
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
  EXPECT_EQ(ask(claimed()), job_wish::go_on);
  auto goes_on = claimed();
  goes_on["spec"]["suspend"] = false;
  EXPECT_EQ(ask(goes_on), job_wish::go_on);
  EXPECT_THAT(api.asked(), testing::Each("GET /apis/batch/v1/namespaces/team-a/jobs/job"));
}

TEST_F(job_wish_test, a_job_is_suspended_whose_run_folder_is_in_a_claim) {
  auto suspended = claimed();
  suspended["spec"]["suspend"] = true;
  EXPECT_EQ(ask(suspended), job_wish::suspend);
  suspended["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z";
  EXPECT_EQ(ask(suspended), job_wish::stop);
}

TEST_F(job_wish_test, a_job_stops_that_is_deleted_or_gone) {
  auto deleted = claimed();
  deleted["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z";
  EXPECT_EQ(ask(deleted), job_wish::stop);
  EXPECT_EQ(ask(refused(404, "jobs.batch \"job\" not found")), job_wish::stop);
}

TEST_F(job_wish_test, a_job_stops_whose_run_goes_with_its_pod) {
  auto in_pod = claimed();
  in_pod["spec"]["template"]["spec"]["volumes"][1] = {{"name", "run"}, {"emptyDir", json::object()}};
  EXPECT_EQ(ask(in_pod), job_wish::stop);
  in_pod["spec"]["suspend"] = true;
  EXPECT_EQ(ask(in_pod), job_wish::stop);
  EXPECT_EQ(ask(json{{"spec", json::object()}}), job_wish::stop);
}

TEST_F(job_wish_test, a_job_whose_journal_alone_is_elsewhere_waits_on_its_hosts) {
  json job{{"metadata", {{"name", "job"}, {"annotations", {{journal_annotation, journal_in_etcd}}}}},
           {"spec", json::object()}};
  EXPECT_EQ(ask(job), job_wish::go_on);
  job["spec"]["suspend"] = true;
  EXPECT_EQ(ask(job), job_wish::wait);
}

TEST_F(job_wish_test, a_job_says_that_it_is_over) {
  auto over = claimed();
  over["metadata"]["annotations"][exit_code_annotation] = "0";
  api.answer = [&](const base::http_request&) { return base::http_answer{200, over.dump()}; };
  auto client = api.make_client();
  EXPECT_EQ(standing_of(client, "job", "run", api.in(1s))->told, 0);
  over["metadata"].erase("annotations");
  EXPECT_EQ(standing_of(client, "job", "run", api.in(1s))->told, std::nullopt);
}

TEST_F(job_wish_test, a_job_says_where_its_run_is_and_what_its_claims_are) {
  auto job = claimed();
  EXPECT_EQ(place_of_run(job, "run"), run_place::claim);
  EXPECT_EQ(claim_in(job, "run"), "runs");
  for (const auto* other : {"files", "model"}) EXPECT_EQ(claim_in(job, other), "") << other;
  job["spec"].erase("template");
  EXPECT_EQ(place_of_run(job, "run"), run_place::pod);
  job["metadata"]["annotations"][journal_annotation] = journal_in_etcd;
  EXPECT_EQ(place_of_run(job, "run"), run_place::hosts);
}

TEST_F(job_wish_test, nobody_knows_where_the_server_does_not_say) {
  EXPECT_FALSE(ask(refused(403, "jobs.batch is forbidden")).has_value());
  const auto begun = api.now;
  EXPECT_FALSE(ask(refused(503, "busy")).has_value());
  EXPECT_LE(api.now - begun, 1s);
}

} // namespace
} // namespace dlrun::kubernetes
