// A job that waits for its hosts, and is asked meanwhile.
#include "runtime/before_begin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

TEST(before_begin, a_stop_that_was_answered_is_obeyed_however_late_it_came) {
  before_begin job{true};
  EXPECT_FALSE(job.is_stopped());
  // Those who wait have looked for the last time.
  EXPECT_EQ(job.answer("stop"), "stopping");
  EXPECT_TRUE(job.is_stopped());
  EXPECT_FALSE(job.begin());
}

TEST(before_begin, who_asks_a_job_that_has_begun_is_answered_by_it) {
  before_begin job{true};
  EXPECT_TRUE(job.begin());
  for (const auto* request : {"stop", "scale 3", "drain beta", "status"})
    EXPECT_EQ(job.answer(request), std::nullopt) << request;
  EXPECT_FALSE(job.is_stopped());
}

TEST(before_begin, nothing_is_scaled_or_drained_before_and_that_is_said) {
  before_begin job{true};
  for (const auto* request : {"scale 3", "drain beta"})
    EXPECT_THAT(job.answer(request).value_or(""), HasSubstr("has not begun")) << request;
  for (const auto* request : {"status", "token 60"}) EXPECT_EQ(job.answer(request), std::nullopt) << request;
  EXPECT_TRUE(job.begin());
}

TEST(before_begin, a_job_of_one_host_waits_for_no_others) {
  before_begin job{false};
  EXPECT_THAT(job.answer("scale 3").value_or(""), HasSubstr("try again in a moment"));
  EXPECT_THAT(job.answer("scale 3").value_or(""), testing::Not(HasSubstr("hosts")));
}

} // namespace
} // namespace dlrun::runtime
