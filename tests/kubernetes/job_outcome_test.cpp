#include "kubernetes/job_outcome.hpp"

#include "base/utf8.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

TEST(job_outcome, ends_the_job_where_it_has_not_succeeded) {
  for (const int code : {1, 2, 3}) {
    const auto patch = outcome_patch({.exit_code = code, .reason = "why", .summary = "what"});
    EXPECT_EQ(patch["spec"], (json{{"backoffLimit", 0}}));
    EXPECT_EQ(patch["metadata"]["annotations"], (json{{"dlrun/exit-code", std::to_string(code)},
                                                      {"dlrun/reason", "why"},
                                                      {"dlrun/summary", "what"}}));
  }
  EXPECT_FALSE(outcome_patch({.exit_code = 0}).contains("spec"));
  EXPECT_FALSE(outcome_patch({.exit_code = 1, .is_final = false}).contains("spec"));
}

TEST(job_outcome, suspends_a_job_that_waits_for_somebody) {
  const job_outcome waits{.exit_code = 1, .reason = "full", .is_final = false, .suspends = true};
  EXPECT_EQ(outcome_patch(waits)["spec"], (json{{"suspend", true}}));
  EXPECT_EQ(outcome_patch(waits)["metadata"]["annotations"]["dlrun/reason"], "full");
  EXPECT_EQ(event_of(waits, {{"metadata", json::object()}}, "e", "p", {})["reason"], "ModelNotWritten");
}

/// Two bytes a character: every second cut would be within one.
TEST(job_outcome, is_bounded_and_cut_between_characters) {
  std::string text = "x";
  while (text.size() < 20'000) text += "\xc3\xa4";
  for (const auto& one : {text, text.substr(1)}) {
    const job_outcome outcome{.exit_code = 1, .reason = one, .summary = one};
    const auto words = termination_message(outcome);
    EXPECT_LE(words.size(), termination_bytes_max);
    EXPECT_EQ(base::first_invalid_utf8(words), std::nullopt);
    const auto patch = outcome_patch(outcome);
    for (const auto* key : {reason_annotation, summary_annotation}) {
      const auto told = patch["metadata"]["annotations"][key].get<std::string>();
      EXPECT_EQ(base::first_invalid_utf8(told), std::nullopt);
      EXPECT_TRUE(told.ends_with("..."));
    }
    EXPECT_LE(patch.dump().size(), 4000U);
  }
}

TEST(job_outcome, is_told_by_the_job_where_that_is_over_for_good) {
  const auto told = [](const char* code, int limit) {
    return told_end({{"metadata", {{"annotations", {{exit_code_annotation, code}}}}},
                     {"spec", {{"backoffLimit", limit}}}});
  };
  EXPECT_EQ(told("0", 200), 0);
  EXPECT_EQ(told("3", 0), 3);
  EXPECT_EQ(told("1", 200), std::nullopt) << "another start may do better";
  EXPECT_EQ(told("", 0), std::nullopt);
  EXPECT_EQ(told_end(json::object()), std::nullopt);
}

TEST(job_outcome, is_noted_for_the_control_pods_of_that_job_alone) {
  const job_outcome outcome{.exit_code = 3, .reason = "2 records were left out", .summary = "completed"};
  const auto note = end_note(outcome, "17");
  EXPECT_EQ(outcome_in(note, "17"), outcome);
  EXPECT_EQ(outcome_in(note, "18"), std::nullopt) << "a Job that was submitted again, under the same prefix";
  EXPECT_EQ(outcome_in(end_note(outcome, ""), ""), std::nullopt) << "nobody knows of which Job";
  for (const auto* strange : {"", "{", "7", R"({"job": "17"})", R"({"job": "17", "exit_code": "3"})"})
    EXPECT_EQ(outcome_in(strange, "17"), std::nullopt) << strange;
}

TEST(job_outcome, is_an_event_of_the_job) {
  const json job{{"metadata", {{"name", "job"}, {"namespace", "n"}, {"uid", "17"}}}};
  const auto when = std::chrono::system_clock::time_point{std::chrono::seconds{1'795'836'645}};
  const auto event =
      event_of({.exit_code = 3, .reason = "2 records were left out"}, job, "job.1", "pod", when);
  EXPECT_EQ(event["involvedObject"]["uid"], "17");
  EXPECT_EQ(event["metadata"], (json{{"name", "job.1"}, {"namespace", "n"}}));
  EXPECT_EQ(event["reason"], "RecordsLeftOut");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"], "exit code 3: 2 records were left out");
  EXPECT_EQ(event["lastTimestamp"], "2026-11-28T03:30:45Z");
  EXPECT_EQ(event_of({.exit_code = 1, .is_final = false}, job, "e", "p", when)["reason"], "AttemptFailed");
  EXPECT_EQ(event_of({.exit_code = 0}, job, "e", "p", when)["type"], "Normal");
}

} // namespace
} // namespace dlrun::kubernetes
