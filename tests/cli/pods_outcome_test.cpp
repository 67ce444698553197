#include "cli/pods_outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

dlrun::report completed() {
  dlrun::report made;
  made.status = run_status::completed;
  made.steps = 7;
  made.parameters_sha256 = "abc";
  return made;
}

dlrun::records_left_out parked(std::uint64_t records) {
  dlrun::records_left_out made;
  made.records = records;
  return made;
}

TEST(pods_outcome, of_a_success_has_its_figures_and_no_reason) {
  const auto told = outcome_of({.code = 0, .reason = "", .report = completed()}, ended_run{}).value();
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.reason, "");
  EXPECT_THAT(told.summary, HasSubstr("completed: 7 steps"));
  EXPECT_THAT(told.summary, HasSubstr("parameters_sha256 abc"));
}

TEST(pods_outcome, of_a_failure_has_the_reason_that_was_printed) {
  EXPECT_EQ(outcome_of({.code = 2, .reason = "no such file"}, ended_run{}).value(),
            (kubernetes::job_outcome{.exit_code = 2, .reason = "no such file"}));
}

TEST(pods_outcome, is_final_where_another_start_would_end_the_same_way) {
  for (const auto error : {error_code::bad_usage, error_code::bad_spec, error_code::bad_data})
    EXPECT_TRUE(outcome_of({.code = 2, .reason = "no such file", .error = error}, ended_run{})->is_final);
  EXPECT_TRUE(outcome_of({.code = 2, .error = error_code::bad_usage}, {.was_begun = true})->is_final);
  EXPECT_FALSE(outcome_of({.code = 2, .error = error_code::bad_data}, {.was_begun = true})->is_final)
      << "its storage may be away for a while";
  EXPECT_FALSE(
      outcome_of({.code = 2, .error = error_code::bad_usage, .may_pass = true}, ended_run{})->is_final)
      << "the run may have begun, and the etcd that knows cannot be asked";
  EXPECT_TRUE(
      outcome_of({.code = 1, .reason = "diverged", .report = dlrun::report{}}, ended_run{})->is_final);
  EXPECT_FALSE(outcome_of({.code = 1, .reason = "a store is on no host that came"}, ended_run{})->is_final);
  const auto waits = outcome_of({.code = 1, .reason = "full", .waits = true}, ended_run{}).value();
  EXPECT_TRUE(waits.suspends && !waits.is_final);
  EXPECT_TRUE(
      outcome_of({.code = 1, .reason = "its namespace goes", .is_for_good = true}, ended_run{})->is_final);
}

TEST(pods_outcome, counts_what_was_left_out_or_is_missing) {
  auto report = completed();
  report.parked_shards = {parked(2), parked(3)};
  EXPECT_EQ(outcome_of({.code = 3, .report = report}, ended_run{})->reason, "5 records were left out");
  report.parked_shards = {parked(1)};
  EXPECT_EQ(outcome_of({.code = 3, .report = report}, ended_run{})->reason, "1 record was left out");
  report.parked_shards.clear();
  report.samples_missing = 4;
  EXPECT_THAT(outcome_of({.code = 1, .report = report}, ended_run{})->reason,
              HasSubstr("4 records are missing"));
}

TEST(pods_outcome, is_none_while_the_job_may_go_on) {
  EXPECT_EQ(outcome_of({.code = 130, .reason = "interrupted"}, ended_run{}), std::nullopt);
  EXPECT_EQ(outcome_of({.code = 2, .reason = "the run folder is in use"}, {.is_elsewhere = true}),
            std::nullopt)
      << "whoever has it tells how the run ends";
}

} // namespace
} // namespace dlrun::cli
