#include "job/exit_code.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

TEST(exit_code, follows_the_error) {
  for (const auto code : {error_code::bad_usage, error_code::bad_spec, error_code::bad_data})
    EXPECT_EQ(exit_code_for(code), exit_code::bad_input);
  for (const auto code :
       {error_code::system, error_code::timed_out, error_code::fenced, error_code::protocol,
        error_code::restart_budget_exceeded, error_code::role_lost, error_code::limit_exceeded})
    EXPECT_EQ(exit_code_for(code), exit_code::job_failed);
  EXPECT_EQ(exit_code_for(error_code::interrupted), exit_code::interrupted);
  EXPECT_EQ(static_cast<int>(exit_code::interrupted), 130);
}

TEST(exit_code, a_run_succeeds_only_with_every_sample_trained_once) {
  report r;
  r.status = run_status::completed;
  EXPECT_EQ(exit_code_for(r), exit_code::success);
  r.samples_missing = 1;
  EXPECT_EQ(exit_code_for(r), exit_code::job_failed);
  r.parked_shards.emplace_back();
  EXPECT_EQ(exit_code_for(r), exit_code::records_left_out);
  r.samples_duplicated = 1;
  EXPECT_EQ(exit_code_for(r), exit_code::job_failed);
  r = {};
  r.status = run_status::failed;
  EXPECT_EQ(exit_code_for(r), exit_code::job_failed);
  r.status = run_status::interrupted;
  EXPECT_EQ(exit_code_for(r), exit_code::interrupted);
}

} // namespace
} // namespace dlrun::job
