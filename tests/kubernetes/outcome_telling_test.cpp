#include "kubernetes/outcome_telling.hpp"

#include "kubernetes/pod_record.hpp"
#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr auto telling_max = 10s;
constexpr auto patch_job_line = "PATCH /apis/batch/v1/namespaces/team-a/jobs/job?fieldManager=dlrun";
constexpr auto make_event_line = "POST /api/v1/namespaces/team-a/events?fieldManager=dlrun";
constexpr auto no_hosts_line = "PATCH /api/v1/namespaces/team-a/configmaps/job-pods?fieldManager=dlrun";
constexpr auto delete_first_line = "DELETE /api/v1/namespaces/team-a/pods/job-hosts-0-1";
constexpr auto delete_second_line = "DELETE /api/v1/namespaces/team-a/pods/job-hosts-1-3";

json pod_json(int slot, int incarnation, const char* phase) {
  const auto name = "job-hosts-" + std::to_string(slot) + "-" + std::to_string(incarnation);
  return {
      {"metadata",
       {{"name", name},
        {"uid", "uid-" + name},
        {"labels", {{slot_label, std::to_string(slot)}, {incarnation_label, std::to_string(incarnation)}}}}},
      {"status", {{"phase", phase}}}};
}

/// Of two pods of hosts, in that phase.
base::http_answer two_pods(const char* phase) {
  return {200, json{{"metadata", {{"resourceVersion", "9"}}},
                    {"items", json::array({pod_json(0, 1, phase), pod_json(1, 3, phase)})}}
                   .dump()};
}

/// A Job, and pods of hosts that end by themselves at a time.
class outcome_telling_test : public testing::Test {
protected:
  outcome_telling_test() {
    api.answer = [this](const base::http_request& asked) {
      const auto line = line_of(asked);
      if (refusals.contains(line)) return refusals.at(line);
      if (line == list_hosts_line) return two_pods(api.now >= hosts_end ? "Succeeded" : "Running");
      return base::http_answer{200, json{{"metadata", {{"name", "job"}, {"uid", "17"}}}}.dump()};
    };
  }

  std::vector<std::string> tell(int code = 1, std::chrono::milliseconds hosts_patience = 5s) {
    auto client = api.make_client();
    return tell_outcome(client,
                        {.job = "job",
                         .pod = "pod",
                         .outcome = {.exit_code = code, .reason = "why"},
                         .hosts_patience = hosts_patience},
                        api.in(telling_max));
  }

  std::vector<std::string> tell(job_outcome outcome) {
    auto client = api.make_client();
    return tell_outcome(client, {.job = "job", .pod = "pod", .outcome = std::move(outcome)},
                        api.in(telling_max));
  }

  played_api api;
  time_point hosts_end{};
  std::map<std::string, base::http_answer> refusals{};
};

TEST_F(outcome_telling_test, suspends_a_job_that_waits_and_leaves_its_hosts_what_they_have) {
  EXPECT_THAT(tell({.exit_code = 1, .reason = "full", .is_final = false, .suspends = true}), IsEmpty());
  EXPECT_THAT(api.asked(), ElementsAre(patch_job_line, make_event_line));
  EXPECT_EQ(json::parse(api.requests[0].body)["spec"], (json{{"suspend", true}}));
}

TEST_F(outcome_telling_test, tells_the_job_first_then_an_event_and_deletes_pods_that_have_ended) {
  EXPECT_THAT(tell(), IsEmpty());
  EXPECT_THAT(api.asked(), ElementsAre(patch_job_line, make_event_line, no_hosts_line, list_hosts_line,
                                       delete_first_line, delete_second_line));
  EXPECT_EQ(json::parse(api.requests[0].body)["spec"]["backoffLimit"], 0);
  EXPECT_EQ(json::parse(api.requests[1].body)["involvedObject"]["uid"], "17");
  EXPECT_EQ(json::parse(api.requests[2].body), json::parse(R"({"data": {"hosts": "0", "ps": "0"}})"))
      << "the container is started once more";
  EXPECT_EQ(json::parse(api.requests[5].body)["preconditions"]["uid"], "uid-job-hosts-1-3");
}

TEST_F(outcome_telling_test, waits_for_hosts_that_hear_of_the_end_by_themselves) {
  hosts_end = api.in(3s);
  EXPECT_THAT(tell(0), IsEmpty());
  EXPECT_GE(api.now, hosts_end);
  EXPECT_EQ(api.asked().back(), delete_second_line);
  EXPECT_FALSE(json::parse(api.requests[0].body).contains("spec"));
  EXPECT_THAT(api.asked(), testing::Not(testing::Contains(no_hosts_line)));
}

TEST_F(outcome_telling_test, deletes_hosts_that_nobody_tells) {
  hosts_end = time_point::max();
  const auto begun = api.now;
  EXPECT_THAT(tell(), IsEmpty());
  EXPECT_EQ(api.asked().back(), delete_second_line);
  EXPECT_GE(api.now - begun, 5s);
  api.requests.clear();
  const auto again = api.now;
  EXPECT_THAT(tell(2, 0s), IsEmpty());
  EXPECT_THAT(api.asked(), ElementsAre(patch_job_line, make_event_line, no_hosts_line, list_hosts_line,
                                       delete_first_line, delete_second_line));
  EXPECT_EQ(api.now, again) << "nobody has told them";
}

/// A Job of two control pods, of which the standby waits for room until the Job controller deletes
/// it.
class with_a_standby : public outcome_telling_test {
protected:
  with_a_standby() {
    api.answer = [this, before = api.answer](const base::http_request& asked) -> result<base::http_answer> {
      const auto line = line_of(asked);
      if (line == list_control_line) return control_pods();
      if (line == patch_job_line && json::parse(asked.body).value("/spec/parallelism"_json_pointer, 0) == 1)
        wanted_one_at = api.now;
      if (line == patch_job_line)
        return base::http_answer{
            200, json{{"metadata", {{"name", "job"}, {"uid", "17"}}}, {"spec", {{"parallelism", 2}}}}.dump()};
      return before(asked);
    };
  }
  base::http_answer control_pods() const {
    json all{{"items", json::array({{{"status", {{"phase", "Running"}}}}})}};
    const bool is_deleted = wanted_one_at && api.now >= *wanted_one_at + controller_takes;
    if (!is_deleted) all["items"].push_back({{"status", {{"phase", phase}}}});
    return {200, all.dump()};
  }
  static constexpr auto list_control_line =
      "GET /api/v1/namespaces/team-a/pods?labelSelector=app.kubernetes.io%2Fname%3Ddlrun%2C"
      "app.kubernetes.io%2Finstance%3Djob%2Capp.kubernetes.io%2Fcomponent%3Dcontrol&limit=500";

  const char* phase = "Pending";
  std::chrono::milliseconds controller_takes{1000};
  std::optional<time_point> wanted_one_at{};
};

TEST_F(with_a_standby, wants_one_pod_when_the_other_one_never_ran_and_waits_until_that_is_gone) {
  EXPECT_THAT(tell(0), IsEmpty());
  ASSERT_TRUE(wanted_one_at.has_value());
  EXPECT_GE(api.now, *wanted_one_at + controller_takes);
}

TEST_F(with_a_standby, lets_the_other_one_end_by_itself_where_it_runs) {
  phase = "Running";
  EXPECT_THAT(tell(0), IsEmpty());
  EXPECT_FALSE(wanted_one_at.has_value());
}

TEST_F(with_a_standby, leaves_both_to_a_job_that_fails) {
  EXPECT_THAT(tell(1), IsEmpty());
  EXPECT_THAT(api.asked(), testing::Not(testing::Contains(list_control_line)));
}

TEST_F(with_a_standby, says_so_where_it_is_not_deleted) {
  controller_takes = 1h;
  EXPECT_THAT(tell(0), testing::Contains(HasSubstr("the standby does not run")));
}

/// They may have the stores that the next start asks for.
TEST_F(outcome_telling_test, leaves_hosts_alone_where_another_start_may_do_better) {
  hosts_end = time_point::max();
  auto client = api.make_client();
  const job_outcome outcome{.exit_code = 1, .reason = "why", .is_final = false};
  EXPECT_THAT(tell_outcome(client, {.job = "job", .pod = "pod", .outcome = outcome}, api.in(telling_max)),
              IsEmpty());
  EXPECT_THAT(api.asked(), ElementsAre(patch_job_line, make_event_line));
}

TEST_F(outcome_telling_test, does_what_it_may_and_says_what_it_may_not) {
  hosts_end = time_point::max();
  refusals[make_event_line] = refused(403, "events is forbidden");
  EXPECT_THAT(tell(), ElementsAre(HasSubstr("cannot create events: HTTP status 403: events is forbidden")));
  EXPECT_EQ(api.asked().back(), delete_second_line);
  refusals.clear();
  refusals[patch_job_line] = refused(403, "exceeded quota");
  api.requests.clear();
  EXPECT_THAT(tell(), ElementsAre(HasSubstr("patch jobs.batch 'job'")));
  EXPECT_EQ(api.asked().back(), delete_second_line);
  EXPECT_THAT(api.asked(), testing::Not(testing::Contains(no_hosts_line))) << "it will be started again";
}

TEST_F(outcome_telling_test, a_pod_that_is_gone_is_no_failure_and_one_that_cannot_be_deleted_is_told) {
  refusals[delete_first_line] = refused(404, "not found");
  EXPECT_THAT(tell(), IsEmpty());
  refusals[delete_first_line] = refused(422, "no");
  EXPECT_THAT(tell(), ElementsAre(HasSubstr("cannot delete pods 'job-hosts-0-1'")));
  EXPECT_EQ(api.asked().back(), delete_second_line);
}

TEST_F(outcome_telling_test, an_event_that_is_there_after_all_is_made) {
  refusals[make_event_line] = refused(409, "already exists");
  EXPECT_THAT(tell(), IsEmpty());
}

TEST_F(outcome_telling_test, ends_in_time_without_an_api) {
  api.answer = [&](const auto&) -> result<base::http_answer> {
    api.now += api.deadlines.back();
    return fail(error_code::timed_out, "no answer");
  };
  const auto begun = api.now;
  EXPECT_THAT(tell(), testing::Contains(HasSubstr("no answer")));
  EXPECT_LE(api.now - begun, telling_max);
}

TEST_F(outcome_telling_test, answers_of_another_shape_are_told_and_nothing_worse) {
  for (const auto* body :
       {R"({"metadata":5,"status":[]})", R"({"metadata":{"uid":5},"status":{"conditions":5}})", "{}"}) {
    api.answer = [body](const auto&) { return base::http_answer{200, body}; };
    EXPECT_THAT(tell(1, 0s), testing::Contains(HasSubstr("answers what is no Job"))) << body;
  }
}

TEST_F(outcome_telling_test, a_reason_that_is_no_text_is_told_as_far_as_it_is) {
  auto client = api.make_client();
  EXPECT_THAT(tell_outcome(client,
                           {.job = "job", .pod = "p", .outcome = {.exit_code = 2, .reason = "\xff/x"}},
                           api.in(telling_max)),
              IsEmpty());
  EXPECT_THAT(json::parse(api.requests[0].body)["metadata"]["annotations"]["dlrun/reason"].get<std::string>(),
              HasSubstr("/x"));
}

} // namespace
} // namespace dlrun::kubernetes
