#include "actors/coordinator/job_ending.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::job_outcome;
using test::only;
using testing::IsEmpty;
using testing::SizeIs;

std::string digests(std::size_t blocks, char digit) { return std::string(blocks * 32, digit); }

protocol::evaluated result_of(std::uint64_t version) {
  protocol::evaluated result;
  result.version = {version};
  return result;
}

/// Of a job of ten steps with one PS shard of one block.
coordinator_core_config durable() {
  coordinator_core_config config;
  config.evaluates = true;
  config.blocks_of_shard = {{0, 1}};
  config.steps = 10;
  config.is_durable = true;
  return config;
}

coordinator_core_config not_durable() {
  auto config = durable();
  config.is_durable = false;
  return config;
}

job_ending digested(const coordinator_core_config& config) {
  job_ending ending{config, {}};
  ending.on_training_finished({3}, {10});
  ending.on_evaluated(result_of(10));
  ending.on_digests({0}, {0, digests(1, 'x')});
  return ending;
}

// ---- digests

TEST(digest_collector, asks_each_shard_for_a_part_at_a_time_and_takes_only_what_was_asked_for) {
  digest_collector collector{{{0, 1500}, {1500, 1501}}};
  EXPECT_THAT(collector.requests(), IsEmpty()) << "nothing is wanted";
  collector.begin({2}, {10});
  const auto requests = only<request_digests>(collector.requests());
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].request.version, version_id{10});
  EXPECT_EQ(requests[0].request.count, 1024U);
  EXPECT_FALSE(collector.take({0}, {1, digests(1024, 'x')}));
  EXPECT_FALSE(collector.take({0}, {0, std::string(31, 'x')}));
  EXPECT_FALSE(collector.take({9}, {0, digests(1024, 'x')}));
  EXPECT_TRUE(collector.take({0}, {0, digests(1024, 'a')}));
  EXPECT_EQ(collector.request({0})->request.first_block, 1024U);
  EXPECT_EQ(collector.request({0})->request.count, 476U);
  EXPECT_TRUE(collector.take({0}, {1024, digests(476, 'b')}));
  EXPECT_FALSE(collector.request({0}));
  EXPECT_THAT(collector.requests(), SizeIs(1));
  EXPECT_EQ(collector.digests(), "") << "one is missing";
  EXPECT_TRUE(collector.take({1}, {1500, digests(1, 'c')}));
  EXPECT_TRUE(collector.is_complete());
  EXPECT_EQ(collector.digests(), digests(1024, 'a') + digests(476, 'b') + digests(1, 'c'));
  collector.begin({3}, {10});
  EXPECT_FALSE(collector.is_complete());
}

// ---- from the last step to the end

TEST(job_ending, without_a_journal_the_last_version_is_evaluated_when_training_is_finished) {
  job_ending ending{not_durable(), {}};
  EXPECT_THAT(ending.on_training_finished({}, {10}), IsEmpty());
  EXPECT_THAT(ending.repeat(), IsEmpty()) << "the dispatcher sees to the evaluation";
  EXPECT_THAT(only<request_digests>(ending.on_evaluated(result_of(10))), SizeIs(1));
  EXPECT_THAT(only<request_digests>(ending.repeat()), SizeIs(1));
  const auto ends = only<finish_job>(ending.on_digests({0}, {0, digests(1, 'x')}));
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].ended.outcome, job_outcome::completed);
  EXPECT_TRUE(ending.is_over());
}

TEST(job_ending, of_a_training_that_was_stopped_early_the_last_version_counts) {
  job_ending ending{durable(), {}};
  for (const std::uint64_t version : {4, 8}) ending.on_evaluated(result_of(version));
  EXPECT_FALSE(ending.evaluation());
  const auto requests = only<request_digests>(ending.on_training_finished({3}, {4}));
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].request.version, version_id{4});
  EXPECT_EQ(ending.last_version(), version_id{4});
  ASSERT_TRUE(ending.evaluation());
  EXPECT_EQ(ending.evaluation()->version, version_id{4});
}

TEST(job_ending, a_rewind_at_the_very_end_makes_the_digests_begin_again) {
  job_ending ending{durable(), {}};
  EXPECT_THAT(only<request_digests>(ending.on_training_finished({3}, {10})), SizeIs(1));
  EXPECT_THAT(ending.on_training_finished({3}, {10}), IsEmpty());
  const auto again = only<request_digests>(ending.on_training_finished({4}, {10}));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].request.timeline, timeline_id{4});
  ending.on_digests({0}, {0, digests(1, 'x')});
  EXPECT_THAT(only<request_digests>(ending.on_training_finished({5}, {10})), SizeIs(1))
      << "also while it closes";
  EXPECT_THAT(ending.on_training_closed({4}), IsEmpty());
}

TEST(job_ending, where_state_is_durable_the_dispatcher_closes_the_training_first) {
  auto ending = digested(durable());
  EXPECT_FALSE(ending.is_over());
  EXPECT_THAT(only<protocol::close_training>(ending.repeat()), SizeIs(1)) << "until it is answered";
  EXPECT_THAT(ending.on_training_closed({2}), IsEmpty()) << "of another timeline";
  EXPECT_THAT(only<finish_job>(ending.on_training_closed({3})), SizeIs(1));
  EXPECT_THAT(ending.on_training_closed({3}), IsEmpty());
  EXPECT_THAT(ending.repeat(), IsEmpty());
}

// ---- the end

TEST(job_ending, the_agent_hears_of_it_when_report_and_journal_are_written) {
  auto ending = digested(durable());
  const auto finished = only<finish_job>(ending.on_training_closed({3}));
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(ending.on_end_journaled(), IsEmpty());
  EXPECT_THAT(only<journal_end>(ending.on_report_written(finished[0].ended)), SizeIs(1));
  EXPECT_THAT(ending.announce(), IsEmpty());
  EXPECT_THAT(only<announce_end>(ending.on_end_journaled()), SizeIs(1));
  EXPECT_THAT(ending.on_end_journaled(), IsEmpty());
  EXPECT_THAT(only<announce_end>(ending.announce()), SizeIs(1)) << "as often as it asks";
}

TEST(job_ending, a_report_that_cannot_be_written_is_told_and_not_journaled_since_it_can_be_resumed) {
  auto ending = digested(durable());
  ending.on_training_closed({3});
  const auto told =
      only<announce_end>(ending.on_report_written({job_outcome::failed, "no space", error_code::system}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].ended.reason, "no space");
}

TEST(job_ending, the_first_end_of_a_job_is_the_one_that_counts) {
  job_ending ending{durable(), {}};
  const auto ends = only<finish_job>(ending.fail("the loss is nan", error_code::diverged));
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].ended.code, error_code::diverged);
  EXPECT_THAT(ending.on_stop({job_outcome::interrupted, "Ctrl-C"}), IsEmpty());
  EXPECT_THAT(ending.on_training_finished({3}, {10}), IsEmpty());
  ending.on_evaluated(result_of(10));
  EXPECT_THAT(ending.evaluations(), IsEmpty());
}

TEST(job_ending, who_stops_a_job_says_whether_it_failed) {
  const auto ended = [](job_outcome outcome) {
    job_ending ending{durable(), {}};
    return only<finish_job>(ending.on_stop({outcome, "why", error_code::restart_budget_exceeded}))
        .at(0)
        .ended;
  };
  EXPECT_EQ(ended(job_outcome::interrupted).outcome, job_outcome::interrupted);
  EXPECT_EQ(ended(job_outcome::failed).outcome, job_outcome::failed);
  EXPECT_EQ(ended(job_outcome::failed).code, error_code::restart_budget_exceeded);
}

/// They would be digests of nothing, and the report must not show any.
TEST(job_ending, of_a_job_that_ends_early_there_are_no_digests) {
  job_ending ending{durable(), {}};
  EXPECT_EQ(ending.digests(), "");
  ending.on_training_finished({3}, {10});
  ending.on_stop({job_outcome::interrupted, "Ctrl-C"});
  EXPECT_EQ(ending.digests(), "");
  EXPECT_EQ(digested(durable()).digests(), digests(1, 'x'));
}

} // namespace
} // namespace dlrun::coordinator
