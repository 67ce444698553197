#include "actors/coordinator/job_report.hpp"

#include "actors/coordinator/coordinator_reports.hpp"
#include "actors/protocol/bit_patterns.hpp"
#include "tests/actors/small_job.hpp"

#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::job_outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

/// Four epochs of ten records in three steps each: twelve steps, forty samples; two PS shards.
class job_report_test : public testing::Test {
protected:
  job_report_test() {
    sources.ended = {job_outcome::completed, ""};
    sources.shards = {status(0), status(1)};
    sources.last_version = {12};
  }
  static protocol::shard_status status(std::uint32_t index) {
    protocol::shard_status made;
    made.shard = {index};
    made.applied = made.committed = {12};
    made.ledger = {.steps_applied = 12, .samples_applied = 40};
    return made;
  }
  /// On a hundred records.
  static protocol::evaluated evaluated(std::uint64_t version, double loss_sum, double accuracy) {
    protocol::evaluated made;
    made.version = {version};
    made.loss_sum_bits = std::bit_cast<std::uint64_t>(loss_sum);
    made.metric_bits = {std::bit_cast<std::uint64_t>(accuracy)};
    made.records = 100;
    return made;
  }
  dlrun::report report(protocol::duration after = seconds(10)) const {
    return make_report(*job, sources, job->started + after);
  }

  std::shared_ptr<const common::job_context> job = test::small_job("/run", {"cluster.ps_shards=2"});
  report_sources sources;
};

TEST_F(job_report_test, tells_of_a_job_that_is_completed) {
  const auto made = report();
  EXPECT_EQ(made.job, "job");
  EXPECT_EQ(made.status, dlrun::run_status::completed);
  EXPECT_EQ(made.reason, "");
  EXPECT_EQ(made.steps, 12U);
  EXPECT_EQ(made.epochs, 4U);
  EXPECT_EQ(made.samples_committed, 40U);
  EXPECT_EQ(made.samples_missing, 0U);
  EXPECT_EQ(made.samples_duplicated, 0U);
  EXPECT_EQ(made.wall_seconds, 10);
  EXPECT_EQ(made.samples_per_second, 4);
  EXPECT_EQ(made.durability.log, "every_step");
  EXPECT_EQ(made.durability.replicas, 1U);
  EXPECT_EQ(made.host.threads, 1U);
  EXPECT_EQ(made.versions.caf, "0.17.6");
}

TEST_F(job_report_test, names_what_workers_computed_on_or_were_to_compute_on) {
  EXPECT_EQ(report().host.device, job->spec.cluster().device());
  sources.device = "H100 | CUDA 13.0";
  EXPECT_EQ(report().host.device, "H100 | CUDA 13.0");
}

TEST_F(job_report_test, how_it_ended_and_why_is_what_was_decided) {
  sources.ended = {job_outcome::failed, "worker 1 died again and again"};
  EXPECT_EQ(report().status, dlrun::run_status::failed);
  EXPECT_EQ(report().reason, "worker 1 died again and again");
  sources.ended = {job_outcome::interrupted, "stopped by 'dlrun stop'"};
  EXPECT_EQ(report().status, dlrun::run_status::interrupted);
}

// ---- samples

TEST_F(job_report_test, a_sample_counts_when_every_shard_has_it_and_is_wrong_when_one_says_so) {
  sources.ended.outcome = job_outcome::interrupted;
  sources.shards[0].applied = {8};
  sources.shards[0].ledger.samples_applied = 28;
  sources.shards[0].ledger.samples_duplicated = 3;
  sources.shards[1].applied = {7};
  sources.shards[1].ledger.samples_applied = 24;
  sources.shards[1].ledger.samples_missing = 2;
  const auto made = report();
  EXPECT_EQ(made.steps, 7U);
  EXPECT_EQ(made.epochs, 2U);
  EXPECT_EQ(made.samples_committed, 24U);
  EXPECT_EQ(made.samples_missing, 2U);
  EXPECT_EQ(made.samples_duplicated, 3U);
}

/// I6: whatever the ledgers say, a completed job has trained all there is.
TEST_F(job_report_test, what_a_completed_job_has_not_trained_is_missing) {
  sources.shards[1].ledger.samples_applied = 38;
  EXPECT_EQ(report().samples_missing, 2U);
  sources.ended.outcome = job_outcome::interrupted;
  EXPECT_EQ(report().samples_missing, 0U) << "it is not over";
}

TEST_F(job_report_test, without_a_word_from_every_shard_nothing_counts) {
  sources.ended = {job_outcome::failed, "ps_shard 1 could not be started"};
  sources.shards.pop_back();
  const auto made = report();
  EXPECT_EQ(made.steps, 0U);
  EXPECT_EQ(made.samples_committed, 0U);
  sources.shards.clear();
  EXPECT_EQ(report().status, dlrun::run_status::failed);
}

// ---- numbers

TEST_F(job_report_test, training_metrics_are_means_over_the_records) {
  sources.shards[1].has_metrics = true;
  sources.shards[1].metrics.loss_sum_bits = std::bit_cast<std::uint64_t>(2.5);
  sources.shards[1].metrics.records = 10;
  sources.shards[1].metrics.sum_bits = protocol::to_bits(std::vector{8.0, 10.0});
  EXPECT_EQ(report().train_loss, 0.25);
  EXPECT_EQ(report().train_metrics, (dlrun::named_values{{"accuracy", 0.8}}));
}

TEST_F(job_report_test, metrics_of_which_nothing_was_heard_are_named_without_a_number) {
  const auto made = report();
  ASSERT_THAT(made.train_metrics, SizeIs(1));
  EXPECT_EQ(made.train_metrics[0].first, "accuracy");
  EXPECT_TRUE(std::isnan(made.train_metrics[0].second));
}

TEST_F(job_report_test, the_last_version_that_was_evaluated_is_the_validation) {
  EXPECT_FALSE(report().validation);
  EXPECT_THAT(report().evaluations, IsEmpty());
  sources.evaluations = {evaluated(3, 80, 0.25), evaluated(12, 50, 0.75)};
  const auto made = report();
  ASSERT_THAT(made.evaluations, SizeIs(2));
  EXPECT_EQ(made.evaluations[0].step, 3U);
  EXPECT_EQ(made.evaluations[0].epoch, 1);
  EXPECT_EQ(made.evaluations[0].loss, 0.8);
  EXPECT_EQ(made.evaluations[0].metrics.all, (dlrun::named_values{{"accuracy", 0.25}}));
  ASSERT_TRUE(made.validation);
  EXPECT_EQ(made.validation->loss, 0.5);
  EXPECT_EQ(made.validation->metrics, (dlrun::named_values{{"accuracy", 0.75}}));
  EXPECT_EQ(made.validation->samples, 100U);
  EXPECT_FALSE(made.best);
  EXPECT_FALSE(made.stopped_early);
  sources.evaluations[1].records = 0;
  EXPECT_FALSE(report().validation);
}

TEST_F(job_report_test, the_best_is_the_first_of_equal_ones_by_the_metric_that_is_wanted) {
  const auto best_of = [&](const std::string& keep_best) {
    job = test::small_job("/run", {"cluster.ps_shards=2", "data.validation={records: a, labels: b}",
                                   "train.evaluate_every=1 epoch", "train.keep_best=" + keep_best});
    return report().best;
  };
  sources.evaluations = {evaluated(3, 80, 0.25), evaluated(6, 50, 0.75), evaluated(9, 60, 0.75)};
  EXPECT_EQ(best_of("{}")->step, 6U);
  EXPECT_EQ(best_of("{}")->metric, "loss");
  EXPECT_EQ(best_of("{}")->value, 0.5);
  EXPECT_EQ(best_of("{metric: accuracy}")->step, 6U);
  EXPECT_EQ(best_of("{metric: accuracy, mode: min}")->step, 3U);
}

TEST_F(job_report_test, a_loss_of_the_last_version_that_is_no_number_is_no_success) {
  EXPECT_EQ(judged(*job, sources).outcome, job_outcome::completed) << "nothing was evaluated";
  sources.evaluations = {evaluated(3, NAN, 0.25), evaluated(12, 50, 0.75)};
  EXPECT_EQ(judged(*job, sources).outcome, job_outcome::completed) << "on the way it may be";
  for (const double loss : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    sources.evaluations[1] = evaluated(12, loss, 0.75);
    const auto ended = judged(*job, sources);
    EXPECT_EQ(ended.outcome, job_outcome::failed);
    EXPECT_THAT(ended.reason, testing::HasSubstr("the loss of its last version, step 12, is"));
  }
  sources.ended = {job_outcome::interrupted, "stopped"};
  EXPECT_EQ(judged(*job, sources).reason, "stopped");
}

TEST_F(job_report_test, what_is_no_number_is_never_the_best) {
  job = test::small_job("/run", {"cluster.ps_shards=2", "data.validation={records: a, labels: b}",
                                 "train.evaluate_every=1 epoch", "train.keep_best={}"});
  sources.evaluations = {evaluated(3, NAN, 0.25)};
  EXPECT_FALSE(report().best);
  sources.evaluations = {evaluated(3, NAN, 0.25), evaluated(6, 50, 0.75), evaluated(9, -INFINITY, 0.75)};
  EXPECT_EQ(report().best->step, 6U);
}

/// Seven steps of twelve: two whole epochs and a step of four records.
TEST_F(job_report_test, of_a_training_that_was_stopped_early_nothing_is_missing) {
  sources.last_version = {7};
  for (auto& shard : sources.shards) {
    shard.applied = {7};
    shard.ledger.samples_applied = 24;
  }
  EXPECT_TRUE(report().stopped_early);
  EXPECT_EQ(report().steps, 7U);
  EXPECT_EQ(report().samples_missing, 0U);
  sources.shards[0].ledger.samples_applied = 22;
  EXPECT_EQ(report().samples_missing, 2U);
}

TEST_F(job_report_test, the_parameters_are_named_by_the_hash_of_their_digests) {
  EXPECT_EQ(report().parameters_sha256, "") << "of a job that failed";
  sources.digests = "abc"; // the vector of FIPS 180-2, appendix B.1
  EXPECT_EQ(report().parameters_sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(job_report_test, goodput_is_what_was_needed_of_what_was_computed) {
  EXPECT_EQ(report().goodput, 0) << "nobody said what was computed";
  const auto with_slots = [&](std::uint64_t slots) {
    sources.tallies = {};
    sources.tallies.add_tallies(
        {{.role = {protocol::role_kind::worker, 0}, .incarnation = {1}, .slots_computed = slots}});
    return report().goodput;
  };
  EXPECT_EQ(with_slots(48), 0.5);
  EXPECT_EQ(with_slots(24), 1);
  EXPECT_EQ(with_slots(20), 1) << "the last words of a worker may be missing";
}

// ---- what happened on the way

TEST_F(job_report_test, losses_and_time_of_earlier_starts_are_part_of_it) {
  const auto day_before = job->started - seconds(10'000);
  run_tallies before{{}, day_before, {1}};
  recovery_record loss;
  loss.role = {protocol::role_kind::ps_shard, 1};
  loss.noticed = day_before + seconds(3);
  std::map<std::string, std::string> entries;
  for (const auto& [key, value] : before.changes({loss}, day_before + seconds(30))) entries[key] = *value;
  sources.tallies = run_tallies{entries, job->started, {2}};
  loss.noticed = job->started + seconds(4);
  loss.detected = milliseconds(25);
  sources.recoveries = {loss};
  const auto made = report();
  EXPECT_EQ(made.wall_seconds, 40);
  EXPECT_EQ(made.samples_per_second, 1);
  ASSERT_THAT(made.recoveries, SizeIs(2));
  EXPECT_EQ(made.recoveries[0].at_seconds, 3);
  EXPECT_EQ(made.recoveries[1].at_seconds, 34);
  EXPECT_EQ(made.recoveries[1].role, "ps_shard");
  EXPECT_EQ(made.recoveries[1].detected_ms, 25);
}

/// A PS shard counts them too, unless it died meanwhile.
TEST_F(job_report_test, a_step_that_was_computed_again_counts_once) {
  sources.tallies.add_rewind({{1}, {5}, 3, "lost"}, job->started + seconds(1));
  sources.tallies.add_rewind({{2}, {6}, 1, "lost again"}, job->started + seconds(2));
  sources.shards[0].ledger.steps_redone = 4;
  const auto made = report();
  EXPECT_EQ(made.steps_redone, 4U);
  EXPECT_THAT(made.rewinds, SizeIs(2));
}

TEST_F(job_report_test, slots_that_were_left_out_are_named_with_the_reason) {
  EXPECT_THAT(report().parked_shards, IsEmpty());
  job = test::small_job("/run", {"cluster.ps_shards=2", "train.skip=['3:1']"});
  sources.parked = {{{3}, {1}, 0}, {{3}, {1}}, {{5}, {0}, 1}};
  const auto parked = report().parked_shards;
  ASSERT_THAT(parked, SizeIs(2)) << "a record of a slot that is left out is none besides";
  EXPECT_EQ(parked[0].step, 3U);
  EXPECT_EQ(parked[0].slot, 1U);
  EXPECT_EQ(parked[0].records, 2U);
  EXPECT_EQ(parked[0].reason, "skipped on request");
  EXPECT_EQ(parked[0].skip, "3:1");
  EXPECT_EQ(parked[1].step, 5U);
  EXPECT_EQ(parked[1].records, 1U);
  EXPECT_EQ(parked[1].skip, "5:0:1");
  EXPECT_EQ(parked[1].reason, "its worker died on it again and again");
}

/// A coordinator may be on another host, whose folder nobody resumes.
TEST(words_for_people, name_the_run_folder_and_the_command_of_the_root) {
  common::job_facts facts = *test::small_job("/var/tmp/host-beta");
  protocol::divergence what;
  what.text = "the loss is nan";
  const auto told = [&] { return describe(what, facts, protocol::version_set{}); };
  EXPECT_THAT(told(), testing::HasSubstr("'dlrun resume /var/tmp/host-beta --from STEP"));
  facts.root_dir = "/runs/iris";
  facts.has_hosts = true;
  EXPECT_THAT(told(), testing::HasSubstr("'dlrun resume /runs/iris --hosts FILE --from STEP"));
  EXPECT_EQ(facts.resume_command(), "dlrun resume /runs/iris --hosts FILE");
}

} // namespace
} // namespace dlrun::coordinator
