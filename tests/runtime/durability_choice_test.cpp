#include "runtime/durability_choice.hpp"

#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using float_seconds = std::chrono::duration<double>;
using testing::AnyOf;
using testing::HasSubstr;

TEST(durability_choice, logs_every_step_up_to_a_share_of_its_time) {
  EXPECT_EQ(choose_durability(1, float_seconds{0}, float_seconds{10}).log, "every_step");
  EXPECT_EQ(choose_durability(1, float_seconds{0.3}, float_seconds{10}).log, "every_step");
  EXPECT_EQ(choose_durability(1, float_seconds{0.301}, float_seconds{10}).log, "snapshots");
  EXPECT_EQ(choose_durability(1, float_seconds{20}, float_seconds{10}).log, "snapshots");
}

TEST(durability_choice, logs_nothing_of_steps_too_short_to_measure) {
  EXPECT_EQ(choose_durability(1, float_seconds{1e-6}, float_seconds{0}).log, "snapshots");
}

TEST(durability_choice, says_what_it_was_made_of) {
  EXPECT_EQ(choose_durability(400'000, float_seconds{0.0002}, float_seconds{0.008}).reason,
            "writing down a step's 0.40 MB takes 0.20 ms, 2 % of the 8.00 ms that it is computed in; up to "
            "3 % every step is logged");
}

TEST(durability_choice, says_what_a_lost_host_costs_where_there_are_copies) {
  EXPECT_EQ(cost_with_copies("every_step"), "no committed step");
  EXPECT_EQ(cost_with_copies("snapshots"), "the steps since the newest snapshot that two hosts have");
}

result<microbatch_trial> tried_here(const prepared_job& job) {
  const auto time = time_microbatch({job.spec, job.gpus, job.train_records}, [](const auto&) {});
  if (!time) return tl::unexpected(time.error());
  return microbatch_trial{.time = *time};
}

class measured_durability : public testing::Test {
protected:
  measured_durability() {
    job.spec = test::parse(test::minimal_spec).value();
    job.parameter_count = 7850;
    job.train_records = 1000;
  }

  test::temporary_folder folder;
  prepared_job job;
};

TEST_F(measured_durability, is_one_of_both_for_a_reason_and_leaves_nothing_behind) {
  const auto choice = measure_durability(job, folder.path(), tried_here);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_THAT(choice->log, AnyOf("every_step", "snapshots"));
  EXPECT_THAT(choice->reason, HasSubstr("a step's 0.03 MB"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(measured_durability, of_a_model_that_ends_who_tries_it_is_what_costs_less) {
  const auto choice = measure_durability(
      job, folder.path(), [](const auto&) { return microbatch_trial{.why = "killed by signal 11 (SEGV)"}; });
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->log, "snapshots");
  EXPECT_THAT(choice->reason,
              HasSubstr("could not be tried, on records of zeros: killed by signal 11 (SEGV)"));
}

TEST_F(measured_durability, of_a_model_that_takes_too_long_is_as_if_it_took_so_long) {
  const auto choice = measure_durability(job, folder.path(), [](const auto&) {
    return microbatch_trial{.time = std::chrono::seconds(30), .why = "it took longer than 30 s"};
  });
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->log, "every_step") << "30 KB are written down in less than a second";
  EXPECT_THAT(choice->reason, HasSubstr("it took longer than 30 s"));
}

TEST_F(measured_durability, tries_no_more_records_than_there_are) {
  job.spec.mutable_train()->set_microbatch_size(1 << 30); // 3 TB of them
  EXPECT_TRUE(measure_durability(job, folder.path(), tried_here));
}

TEST_F(measured_durability, of_a_folder_that_cannot_be_written_is_an_error_that_names_it) {
  const auto missing = folder.path() / "missing";
  const auto choice = measure_durability(job, missing, tried_here);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, error_code::system);
  EXPECT_THAT(choice.error().message, HasSubstr(missing.string()));
  EXPECT_THAT(choice.error().message, HasSubstr("No such file or directory"));
}

} // namespace
} // namespace dlrun::runtime
