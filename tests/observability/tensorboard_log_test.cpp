#include "observability/tensorboard_log.hpp"

#include "observability/event_folder.hpp"
#include "tests/actors/full_disk.hpp"
#include "tests/data/files.hpp"
#include "tests/observability/watched_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::observability {
namespace {

using std::chrono::milliseconds;
using test::at_step;
using test::begin;
using test::evaluated;
using test::rewind_to;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class tensorboard_log_test : public testing::Test {
protected:
  tensorboard_log make() {
    return {test::watched_run(run_dir), [this](std::string why) { complaints.push_back(std::move(why)); }};
  }
  /// Heard of a second after what was heard before.
  void hear(tensorboard_log& log, std::uint64_t step) {
    log.update(at_step(step), now += milliseconds(1000));
  }
  std::vector<std::uint64_t> steps(const std::string& tag) const {
    std::vector<std::uint64_t> all;
    auto read = read_event_folder(folder);
    for (const auto& one : read[tag]) all.push_back(one.step);
    return all;
  }
  std::vector<float> values(const std::string& tag) const {
    std::vector<float> all;
    auto read = read_event_folder(folder);
    for (const auto& one : read[tag]) all.push_back(one.value);
    return all;
  }

  test::temporary_folder temporary;
  std::filesystem::path run_dir = temporary.path() / "run";
  std::filesystem::path folder = run_dir / "tensorboard";
  protocol::time_point now = begin;
  std::vector<std::string> complaints;
};

TEST_F(tensorboard_log_test, training_is_shown_by_step) {
  auto log = make();
  hear(log, 0);
  hear(log, 4);
  hear(log, 20);
  EXPECT_THAT(steps("train/loss"), ElementsAre(4, 20));
  EXPECT_THAT(values("train/loss"), ElementsAre(0.25F, 0.05F));
  EXPECT_THAT(values("train/epoch_loss"), ElementsAre(0.25F, 0.25F));
  EXPECT_THAT(values("train/accuracy"), ElementsAre(0.75F, 0.75F));
  EXPECT_THAT(values("train/lr"), ElementsAre(0.5F, 0.25F)) << "of the first epoch, of the second";
  EXPECT_THAT(complaints, IsEmpty());
}

TEST_F(tensorboard_log_test, points_are_half_a_second_apart_and_none_is_written_twice) {
  auto log = make();
  for (std::uint64_t tick = 0; tick < 20; ++tick)
    log.update(at_step(1 + tick / 2), begin + tick * milliseconds(100));
  EXPECT_THAT(steps("train/loss"), ElementsAre(1, 3, 6, 8));
}

TEST_F(tensorboard_log_test, an_evaluation_is_a_point_of_its_own_with_all_digits) {
  auto log = make();
  log.event(evaluated(13, 0.123456789, 0.875));
  log.event(evaluated(26, 0.5, 0.75));
  log.event(evaluated(26, 0.5, 0.75));
  EXPECT_THAT(steps("validation/loss"), ElementsAre(13, 26));
  EXPECT_THAT(values("validation/loss"), ElementsAre(0.123456789F, 0.5F));
  EXPECT_THAT(values("validation/accuracy"), ElementsAre(0.875F, 0.75F));
}

TEST_F(tensorboard_log_test, what_is_done_again_is_shown_once) {
  auto log = make();
  for (const std::uint64_t step : {5, 10, 15, 20}) hear(log, step);
  log.event(evaluated(8, 1, 0));
  log.event(evaluated(16, 1, 0));
  log.event(rewind_to(9));
  EXPECT_THAT(steps("train/loss"), ElementsAre(5));
  EXPECT_THAT(steps("validation/loss"), ElementsAre(8));
  hear(log, 20); // is what was heard last, of before
  EXPECT_THAT(steps("train/loss"), ElementsAre(5));
  for (const std::uint64_t step : {9, 12, 20}) hear(log, step);
  log.event(evaluated(16, 0.5, 0));
  EXPECT_THAT(steps("train/loss"), ElementsAre(5, 12, 20));
  EXPECT_THAT(values("validation/loss"), ElementsAre(1, 0.5F));
}

TEST_F(tensorboard_log_test, a_point_that_waits_is_void_when_training_goes_back) {
  auto log = make();
  hear(log, 5);
  log.update(at_step(9), now + milliseconds(100));
  log.event(rewind_to(7));
  log.finish({});
  EXPECT_THAT(steps("train/loss"), ElementsAre(5));
}

TEST_F(tensorboard_log_test, a_resumed_run_goes_on_behind_what_is_there_in_a_file_of_its_own) {
  {
    auto log = make();
    for (const std::uint64_t step : {5, 10, 15}) hear(log, step);
    log.event(evaluated(13, 1, 0));
  }
  auto log = make();
  EXPECT_THAT(event_files(folder), SizeIs(2));
  for (const std::uint64_t step : {11, 13, 18}) hear(log, step); // the same bits again up to 15
  log.event(evaluated(13, 1, 0));
  log.event(evaluated(26, 1, 0));
  EXPECT_THAT(steps("train/loss"), ElementsAre(5, 10, 15, 18));
  EXPECT_THAT(steps("validation/loss"), ElementsAre(13, 26));
}

TEST_F(tensorboard_log_test, a_resumed_run_that_goes_back_voids_what_an_earlier_start_wrote) {
  {
    auto log = make();
    for (const std::uint64_t step : {5, 10, 15}) hear(log, step);
  }
  auto log = make();
  hear(log, 15);
  log.event(rewind_to(7));
  for (const std::uint64_t step : {8, 12}) hear(log, step);
  EXPECT_THAT(steps("train/loss"), ElementsAre(5, 8, 12));
}

TEST_F(tensorboard_log_test, new_files_come_last_whatever_the_clock_says) {
  std::filesystem::create_directories(folder);
  const auto future = folder / "events.out.tfevents.9999999990.host";
  std::ofstream{future} << file_head(1);
  make();
  make();
  const auto files = event_files(folder);
  ASSERT_THAT(files, SizeIs(3));
  EXPECT_EQ(files[0], future);
  EXPECT_THAT(files[1].filename().string(), HasSubstr("tfevents.9999999991."));
  EXPECT_THAT(files[2].filename().string(), HasSubstr("tfevents.9999999992."));
}

TEST_F(tensorboard_log_test, the_end_is_shown_also_when_it_was_not_heard_of) {
  auto log = make();
  hear(log, 120);
  log.update(at_step(125), now + milliseconds(100));
  dlrun::report report;
  report.status = dlrun::run_status::completed;
  report.steps = 130;
  report.train_loss = 0.0625;
  report.train_metrics = {{"accuracy", 1}};
  report.evaluations = {{65, 5, 0.5, {{{"accuracy", 0.5}}}}, {130, 10, 0.125, {{{"accuracy", 0.875}}}}};
  log.event(evaluated(65, 0.5, 0.5));
  log.finish(report);
  EXPECT_THAT(steps("train/loss"), ElementsAre(120, 125));
  EXPECT_THAT(steps("train/epoch_loss"), ElementsAre(120, 125, 130));
  EXPECT_EQ(values("train/epoch_loss").back(), 0.0625F);
  EXPECT_EQ(values("train/accuracy").back(), 1);
  EXPECT_THAT(steps("validation/loss"), ElementsAre(65, 130));
  EXPECT_THAT(values("validation/accuracy"), ElementsAre(0.5F, 0.875F));
}

TEST_F(tensorboard_log_test, a_run_that_failed_has_no_last_point) {
  auto log = make();
  hear(log, 3);
  dlrun::report report;
  report.steps = 9;
  log.finish(report);
  EXPECT_THAT(steps("train/epoch_loss"), ElementsAre(3));
}

TEST_F(tensorboard_log_test, a_folder_that_cannot_be_made_is_complained_of_once) {
  std::filesystem::create_directories(run_dir);
  std::ofstream{folder} << "a file";
  auto log = make();
  for (const std::uint64_t step : {5, 10}) hear(log, step);
  log.event(rewind_to(3));
  log.event(evaluated(13, 1, 0));
  log.finish({});
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0], HasSubstr(folder.string()));
  EXPECT_THAT(complaints[0], HasSubstr("the training goes on"));
}

TEST_F(tensorboard_log_test, a_full_disk_is_complained_of_once_and_loses_nothing) {
  auto log = make();
  hear(log, 5);
  {
    const test::full_disk full{std::filesystem::file_size(event_files(folder).front()) + 3};
    for (const std::uint64_t step : {10, 15, 20}) hear(log, step);
  }
  EXPECT_THAT(steps("train/loss"), ElementsAre(5));
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0], HasSubstr("No space left on device"));
  hear(log, 20); // nothing new: what waits is written
  EXPECT_THAT(steps("train/loss"), ElementsAre(5, 10, 15, 20));
  EXPECT_THAT(complaints, SizeIs(1));
}

} // namespace
} // namespace dlrun::observability
