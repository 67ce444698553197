#include "kubernetes/suspension_telling.hpp"

#include "kubernetes/pod_record.hpp"
#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr auto look_at_job = "GET /apis/batch/v1/namespaces/team-a/jobs/job";
constexpr auto annotate_job = "PATCH /apis/batch/v1/namespaces/team-a/jobs/job?fieldManager=dlrun";
constexpr auto delete_first = "DELETE /api/v1/namespaces/team-a/pods/job-hosts-0-1";
constexpr auto delete_second = "DELETE /api/v1/namespaces/team-a/pods/job-hosts-1-1";

json pod_of_host(const char* slot) {
  const auto name = std::string{"job-hosts-"} + slot + "-1";
  return {
      {"metadata",
       {{"name", name}, {"uid", "uid-" + name}, {"labels", {{slot_label, slot}, {incarnation_label, "1"}}}}},
      {"status", {{"phase", "Running"}}}};
}

/// A Job whose run folder is in a claim, and two pods of hosts.
class suspension_telling_test : public testing::Test {
protected:
  suspension_telling_test() {
    api.answer = [this](const base::http_request& asked) {
      const auto line = line_of(asked);
      if (refusals.contains(line)) return refusals.at(line);
      if (line == list_hosts_line)
        return base::http_answer{200, json{{"metadata", {{"resourceVersion", "9"}}},
                                           {"items", {pod_of_host("0"), pod_of_host("1")}}}
                                          .dump()};
      return base::http_answer{
          200,
          json{{"metadata", {{"name", "job"}}},
               {"spec",
                {{"suspend", is_suspended},
                 {"template",
                  {{"spec",
                    {{"volumes", json::array({{{"name", "run"},
                                               {"persistentVolumeClaim", {{"claimName", "runs"}}}}})}}}}}}}}
              .dump()};
    };
  }

  std::vector<std::string> tell(const std::string& lacking = "") {
    auto client = api.make_client();
    return tell_suspension(client,
                           {.job = "job",
                            .volume = "run",
                            .step = 17,
                            .lacking = lacking,
                            .at = std::chrono::system_clock::time_point{1'800'000'000s}},
                           api.in(10s));
  }

  played_api api;
  bool is_suspended = true;
  std::map<std::string, base::http_answer> refusals{};
};

TEST_F(suspension_telling_test, tells_how_far_the_run_is_and_deletes_the_pods) {
  EXPECT_THAT(tell(), IsEmpty());
  EXPECT_THAT(api.asked(),
              ElementsAre(look_at_job, annotate_job, list_hosts_line, delete_first, delete_second));
  EXPECT_EQ(
      json::parse(api.requests[1].body),
      json::parse(
          R"({"metadata":{"annotations":{"dlrun/suspended":"2027-01-15T08:00:00Z","dlrun/suspended-at-step":"17"}}})"));
  EXPECT_EQ(json::parse(api.requests[4].body)["preconditions"]["uid"], "uid-job-hosts-1-1");
}

TEST_F(suspension_telling_test, leaves_pods_that_have_what_is_nowhere_else) {
  EXPECT_THAT(tell("on hosts alone: PS shard 1"), ElementsAre(HasSubstr("stay while the Job is suspended; on "
                                                                        "hosts alone: PS shard 1")));
  EXPECT_THAT(api.asked(), ElementsAre(look_at_job, annotate_job));
}

TEST_F(suspension_telling_test, leaves_all_as_it_is_where_the_job_was_released_meanwhile) {
  is_suspended = false;
  EXPECT_THAT(tell(), IsEmpty());
  EXPECT_THAT(api.asked(), ElementsAre(look_at_job));
}

TEST_F(suspension_telling_test, leaves_pods_where_nobody_says_that_the_job_is_suspended) {
  refusals[look_at_job] = refused(403, "jobs.batch is forbidden");
  EXPECT_THAT(tell(), ElementsAre(HasSubstr("the pods of hosts stay: ")));
}

TEST_F(suspension_telling_test, does_what_it_may_and_says_what_it_may_not) {
  refusals[annotate_job] = refused(403, "no");
  refusals[delete_first] = refused(422, "no");
  EXPECT_THAT(tell(), ElementsAre(HasSubstr("patch jobs.batch 'job'"),
                                  HasSubstr("cannot delete pods 'job-hosts-0-1'")));
  EXPECT_EQ(api.asked().back(), delete_second);
}

} // namespace
} // namespace dlrun::kubernetes
