/// Whole runs with faults in one process, all roles as threads: the sanitizers see every role at
/// work.
#include "tests/runtime/small_training.hpp"

#include <dlrun/report.hpp>
#include <dlrun/training.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun {
namespace {

using testing::HasSubstr;

using overrides = std::vector<std::string>;

/// Four tensors, so that up to four PS shards have some.
constexpr auto layers = "model.layers=[{linear: {out_features: 16}}, relu, {linear: {out_features: 2}}]";

overrides with(overrides all, const overrides& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Stops the training when `step` is committed.
class stop_at final : public training_callback {
public:
  explicit stop_at(std::uint64_t step)
      : step_(step) {}
  void on_progress(const progress& now, training_control& control) override {
    if (now.step >= step_) control.stop("far enough");
  }

private:
  std::uint64_t step_;
};

class whole_run : public testing::Test {
protected:
  /// A new training, to its end.
  report train(const test::small_training& where, const overrides& how,
               std::vector<std::shared_ptr<training_callback>> callbacks = {}) {
    return ended(
        training::start(where.job(how), {.run_dir = where.run_dir(), .callbacks = std::move(callbacks)}));
  }
  /// The one of `where`, resumed, to its end.
  report resume(const test::small_training& where, const resume_options& how) {
    return ended(training::resume(where.run_dir(), how));
  }
  /// The report of a training that nothing disturbs.
  report undisturbed(const overrides& how) {
    const test::small_training where;
    auto report = train(where, how);
    EXPECT_EQ(report.status, run_status::completed) << report.reason;
    return report;
  }
  static void expect_same(const report& got, const report& wanted) {
    EXPECT_EQ(got.status, run_status::completed) << got.reason;
    EXPECT_EQ(got.parameters_sha256, wanted.parameters_sha256);
    EXPECT_EQ(got.samples_missing + got.samples_duplicated, 0U);
  }

private:
  static report ended(result<training> one) {
    if (!one) {
      ADD_FAILURE() << one.error().message;
      return {};
    }
    auto report = one->wait();
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : dlrun::report{};
  }
};

TEST_F(whole_run, has_the_same_bits_for_any_number_of_workers_and_shards_and_any_log) {
  const overrides base{layers, "train.clip_norm=0.5", "train.microbatches_per_step=4"};
  const auto reference = undisturbed(with(base, {"durability.log=off"}));
  for (const auto* log : {"every_step", "snapshots"})
    for (const auto& cluster : {overrides{"cluster.workers=3", "cluster.ps_shards=2"},
                                overrides{"cluster.workers=2", "cluster.ps_shards=4"}}) {
      SCOPED_TRACE(testing::Message() << log << ", " << cluster.front());
      expect_same(undisturbed(with(with(base, cluster), {std::string{"durability.log="} + log})), reference);
    }
}

TEST_F(whole_run, that_goes_back_makes_the_same_bits_again) {
  // Several looks at its progress long, also where a step takes a quarter of a millisecond.
  const overrides how{layers, "train.epochs=2000", "cluster.workers=2", "cluster.ps_shards=3",
                      "durability.max_recovery=50ms"};
  const auto reference = undisturbed(how);
  for (const auto* log : {"every_step", "snapshots"}) {
    SCOPED_TRACE(log);
    const test::small_training where;
    const auto stopped =
        train(where, with(how, {std::string{"durability.log="} + log}), {std::make_shared<stop_at>(200)});
    ASSERT_EQ(stopped.status, run_status::interrupted) << stopped.reason;
    const auto report = resume(where, {.from = 100});
    expect_same(report, reference);
    ASSERT_FALSE(report.rewinds.empty());
    EXPECT_LE(report.rewinds.front().version, 100U);
  }
}

TEST_F(whole_run, that_diverges_ends_naming_the_step_and_can_be_done_again) {
  const overrides how{"model.layers=[{linear: {out_features: 16}}, leaky_relu, {linear: {out_features: 16}}, "
                      "leaky_relu, {linear: {out_features: 2}}]",
                      "train.epochs=40", "cluster.workers=2", "cluster.ps_shards=2"};
  const auto reference = undisturbed(how);
  const test::small_training where;
  const auto failed = train(where, with(how, {"train.optimizer.sgd.lr=1000000"}));
  EXPECT_EQ(failed.status, run_status::failed);
  EXPECT_THAT(failed.reason, HasSubstr("diverged at step "));
  expect_same(resume(where, {.overrides = {"train.optimizer.sgd.lr=0.1"}, .from = 0}), reference);
}

TEST_F(whole_run, that_uses_up_its_disk_quota_ends_in_order_and_goes_on_with_more) {
  const overrides how{
      "model.layers=[{linear: {out_features: 600}}, relu, {linear: {out_features: 600}}, relu, "
      "{linear: {out_features: 2}}]",
      "train.epochs=6", "cluster.ps_shards=2"};
  const auto reference = undisturbed(how);
  const test::small_training where;
  const auto failed = train(where, with(how, {"durability.disk_quota=8MB"}));
  EXPECT_EQ(failed.status, run_status::failed);
  EXPECT_THAT(failed.reason, HasSubstr("durability.disk_quota"));
  expect_same(resume(where, {.overrides = {"durability.disk_quota=1GB"}}), reference);
}

TEST_F(whole_run, that_is_evaluated_and_stopped_early_ends_at_the_same_version) {
  const overrides base{layers,
                       "train.epochs=60",
                       "data.validation.split=0.25",
                       "train.evaluate_every=1 epoch",
                       "train.early_stopping={patience: 3}",
                       "train.keep_best={}"};
  const auto reference = undisturbed(base);
  const auto shared = undisturbed(with(base, {"cluster.workers=2", "cluster.ps_shards=3"}));
  expect_same(shared, reference);
  EXPECT_EQ(shared.steps, reference.steps);
  EXPECT_EQ(shared.stopped_early, reference.stopped_early);
  ASSERT_TRUE(shared.best);
  EXPECT_EQ(shared.best->step, reference.best->step);
}

} // namespace
} // namespace dlrun
