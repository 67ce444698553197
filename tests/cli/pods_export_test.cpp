#include "cli/pods_export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

verb_end of_a_completed_run() {
  dlrun::report report;
  report.status = run_status::completed;
  return {.code = 0, .report = report};
}

/// Of no run, so that nothing can be written, and in no pod, so that no Job says where the run is.
class pods_export_test : public testing::Test {
protected:
  pods_export unwritable{"job", "/nowhere", "/nowhere/job.safetensors"};
};

TEST_F(pods_export_test, has_nothing_to_do_where_no_file_is_wanted) {
  pods_export nothing{"job", "/nowhere", ""};
  EXPECT_EQ(nothing.deliver({}, nullptr), "");
  EXPECT_EQ(nothing.end(of_a_completed_run()).code, 0);
}

/// The test would last for half a minute else.
TEST_F(pods_export_test, waits_for_nothing_when_it_is_asked_to_stop) {
  std::stop_source stop;
  stop.request_stop();
  const auto why = unwritable.deliver(stop.get_token(), nullptr);
  EXPECT_THAT(why, HasSubstr("the job is complete, and its model cannot be written to"));
  EXPECT_THAT(why, EndsWith("another start of this container tries it again"));
  const auto ended = unwritable.end({.code = 1, .reason = why});
  EXPECT_EQ(ended.reason, why);
  EXPECT_FALSE(ended.is_for_good || ended.waits) << "nobody knows what else has the model";
}

TEST_F(pods_export_test, of_a_run_that_was_completed_before_is_tried_once_and_ends_it_as_failed) {
  const auto ended = unwritable.end(of_a_completed_run());
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.reason, HasSubstr("/nowhere/job.safetensors"));
  EXPECT_FALSE(ended.report || ended.is_for_good || ended.waits);
}

TEST_F(pods_export_test, leaves_a_run_alone_that_is_not_completed) {
  const auto ended = unwritable.end({.code = 130, .reason = "interrupted"});
  EXPECT_EQ(ended.code, 130);
  EXPECT_EQ(ended.reason, "interrupted");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_NE(unwritable.deliver(stop.get_token(), nullptr), "");
  EXPECT_EQ(unwritable.end({.code = 130}).code, 130) << "it was asked to stop meanwhile";
}

} // namespace
} // namespace dlrun::cli
