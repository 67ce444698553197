#include "tests/kernels_cuda/modules/fake_modules.hpp"
#include "tests/runtime/small_training.hpp"

#include <cmath>
#include <dlrun/metric.hpp>
#include <dlrun/spec.hpp>
#include <dlrun/training.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <stdexcept>

namespace dlrun {
namespace {

using testing::HasSubstr;

/// Keeps what it was told; all on one thread but read after the end.
class recorder final : public training_callback {
public:
  void on_progress(const progress& now, training_control& control) override {
    last = now;
    if (stop_at && now.step >= *stop_at) control.stop("seen enough");
    if (throws_number) throw 7;
    if (throws) throw std::runtime_error("no more paper");
  }
  void on_event(const training_event& event, training_control&) override { events.push_back(event); }
  void on_evaluation(const evaluation& result, training_control&) override { evaluations.push_back(result); }
  void on_end(const report& report) override { end = report; }

  std::optional<std::uint64_t> stop_at;
  bool throws = false, throws_number = false;
  std::optional<progress> last;
  std::vector<training_event> events;
  std::vector<evaluation> evaluations;
  std::optional<report> end;
};

class training_test : public testing::Test {
protected:
  result<training> start(const std::vector<std::string>& overrides = {}) {
    return training::start(small.job(overrides), {.run_dir = small.run_dir(), .callbacks = {watcher}});
  }
  /// So long that nobody waits for its end.
  static constexpr auto endless = "train.epochs=100000";

  test::small_training small;
  std::shared_ptr<recorder> watcher = std::make_shared<recorder>();
};

TEST_F(training_test, trains_and_reports) {
  auto one = start();
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->run_dir(), small.run_dir());
  const auto report = one->wait();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, run_status::completed) << report->reason;
  EXPECT_EQ(report->steps, 8U);
  EXPECT_EQ(report->samples_missing + report->samples_duplicated, 0U);
  EXPECT_EQ(one->progress().status, "completed");
  EXPECT_EQ(one->progress().step, 8U);
  ASSERT_TRUE(watcher->end);
  EXPECT_EQ(watcher->end->parameters_sha256, report->parameters_sha256);
  EXPECT_EQ(read_report(small.run_dir() / "report.json")->parameters_sha256, report->parameters_sha256);
  EXPECT_EQ(one->wait()->steps, 8U) << "the end can be asked for again";
}

TEST_F(training_test, a_last_version_without_a_finite_validation_loss_is_no_success) {
  std::ofstream(small.folder.path() / "huge.csv") << "x,y,class\n3e38,3e38,a\n3e38,3e38,b\n-3e38,-3e38,a\n";
  auto one =
      start({"data.validation={records: huge.csv}", // squares of it are beyond a float
             "model.layers=[{linear: {out_features: 2}, name: only}, {multiply: {}, inputs: [only, only]}]"});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, run_status::failed);
  EXPECT_THAT(report->reason, HasSubstr("on the validation data the loss of its last version, step 8, is"));
}

/// Sums NaN over the records, as a mistake in a metric does.
class no_number final : public metric {
public:
  std::string name() const override { return "no_number"; }
  std::size_t floats() const override { return 1; }
  void add(std::span<const float>, const batch&, std::span<float> sums) const override { sums[0] += NAN; }
  double value(std::span<const double> sums) const override { return sums[0]; }
};

TEST_F(training_test, a_metric_that_is_no_number_is_told_as_the_one_to_blame) {
  ASSERT_TRUE(
      register_metric("no_number", [](const metric_request&) -> result<std::unique_ptr<const metric>> {
        return std::make_unique<no_number>();
      }));
  auto one = start({"model.metrics=[{custom: {type: no_number}}]"});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, run_status::failed);
  EXPECT_THAT(report->reason, HasSubstr("loss and gradient are finite, but a metric is not (no_number)"));
}

TEST_F(training_test, a_callback_ends_it) {
  watcher->stop_at = 3;
  auto one = start({endless});
  ASSERT_TRUE(one) << one.error().message;
  const auto stopped = one->wait();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->status, run_status::interrupted);
  EXPECT_THAT(stopped->reason, HasSubstr("seen enough"));
}

TEST_F(training_test, its_folder_is_its_own_until_the_end) {
  auto one = start({endless});
  ASSERT_TRUE(one) << one.error().message;
  const auto other = training::resume(small.run_dir());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("is in use"));
  one->stop("");
  ASSERT_TRUE(one->wait());
  const auto resumed = training::resume(small.run_dir());
  EXPECT_TRUE(resumed) << resumed.error().message;
}

TEST_F(training_test, goes_on_where_it_ended) {
  const std::vector<std::string> longer{"train.epochs=2500"}; // several looks at its progress long
  {
    watcher->stop_at = 3;
    auto one = start(longer);
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_EQ(one->wait()->status, run_status::interrupted);
  }
  std::string resumed_sha;
  {
    auto one = training::resume(small.run_dir());
    ASSERT_TRUE(one) << one.error().message;
    const auto report = one->wait();
    ASSERT_EQ(report->status, run_status::completed) << report->reason;
    resumed_sha = report->parameters_sha256;
  }
  const test::small_training other;
  auto whole = training::start(other.job(longer), {.run_dir = other.run_dir()});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->wait()->parameters_sha256, resumed_sha);
  const auto again = training::resume(small.run_dir());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("is completed: there is nothing left to train"));
}

TEST_F(training_test, the_destructor_ends_it_in_order) {
  {
    const auto one = start({endless});
    ASSERT_TRUE(one) << one.error().message;
  }
  ASSERT_TRUE(watcher->end);
  EXPECT_EQ(watcher->end->status, run_status::interrupted);
  EXPECT_THAT(watcher->end->reason, HasSubstr("the program ended the training"));
}

TEST_F(training_test, a_callback_that_throws_ends_it_with_the_reason) {
  watcher->throws = true;
  auto one = start({endless});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  EXPECT_EQ(report->status, run_status::interrupted);
  EXPECT_THAT(report->reason, HasSubstr("a callback threw: no more paper"));
}

TEST_F(training_test, a_callback_that_throws_what_is_no_exception_ends_it_too) {
  watcher->throws_number = true;
  auto one = start({endless});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  EXPECT_EQ(report->status, run_status::interrupted);
  EXPECT_THAT(report->reason, HasSubstr("a callback threw: what is no std::exception"));
}

TEST_F(training_test, what_durability_auto_became_is_an_event) {
  auto one = start({"durability.log=auto", "cluster.device=cpu"});
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_EQ(one->wait()->status, run_status::completed);
  ASSERT_FALSE(watcher->events.empty());
  EXPECT_EQ(watcher->events.front().event, "durability");
  EXPECT_THAT(watcher->events.front().text, HasSubstr("durability.log: auto is "));
}

TEST_F(training_test, what_device_auto_became_is_the_first_event) {
  const test::named_module named{"/nowhere/none.so"};
  auto one = start({"durability.log=auto"});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  ASSERT_EQ(report->status, run_status::completed);
  ASSERT_GE(watcher->events.size(), 2U);
  EXPECT_EQ(watcher->events[0].event, "device");
  EXPECT_THAT(watcher->events[0].text,
              HasSubstr("cluster.device: auto is cpu: there is no CUDA module: '/nowhere"));
  EXPECT_EQ(watcher->events[1].event, "durability");
  EXPECT_EQ(report->host.device, "cpu");
}

TEST_F(training_test, a_gpu_that_does_not_open_ends_the_job_with_the_reason) {
  const test::named_module named{test::fake_module("two_gpus")};
  auto one = start({"cluster.device=cuda", "cluster.gpus=1", "cluster.restart={intensity: 1, period_s: 60}"});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  ASSERT_EQ(report->status, run_status::failed);
  EXPECT_THAT(report->reason, HasSubstr("GPU 1 does not answer"));
}

TEST_F(training_test, evaluations_are_told_as_they_are_in_the_report) {
  auto one = start({"train.evaluate_every=1 epoch", "data.validation.split=0.25"});
  ASSERT_TRUE(one) << one.error().message;
  const auto report = one->wait();
  ASSERT_EQ(report->status, run_status::completed) << report->reason;
  ASSERT_EQ(report->evaluations.size(), 2U);
  ASSERT_EQ(watcher->evaluations.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& told = watcher->evaluations[i];
    EXPECT_EQ(told.step, report->evaluations[i].step);
    EXPECT_EQ(told.epoch, report->evaluations[i].epoch);
    EXPECT_EQ(told.loss, report->evaluations[i].loss);
    EXPECT_EQ(told.metrics.all, report->evaluations[i].metrics.all);
  }
}

TEST_F(training_test, processes_need_a_program_that_can_be_a_role) {
  const auto one = start({"cluster.placement=processes"});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, error_code::bad_usage);
  EXPECT_THAT(one.error().message, HasSubstr("call dlrun::run_role(argc, argv) at the beginning of main()"));
  EXPECT_FALSE(std::filesystem::exists(small.run_dir()));
}

TEST_F(training_test, what_is_wrong_is_told_before_anything_starts) {
  const auto one = start({"model.input=[3]"});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, error_code::bad_data);
  EXPECT_FALSE(std::filesystem::exists(small.run_dir()));
}

TEST(job_spec_test, is_built_of_a_message_as_of_text) {
  const test::small_training small;
  const auto text = small.job();
  auto message = text.message();
  message.mutable_train()->clear_seed(); // a default, filled in again
  const auto built = job_spec::build(message);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->to_yaml(), text.to_yaml());
  EXPECT_EQ(job_spec::parse(built->to_yaml())->to_yaml(), text.to_yaml());
}

TEST(job_spec_test, a_message_is_checked_as_text_is) {
  spec::JobSpec message;
  message.set_name("empty");
  const auto built = job_spec::build(message);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, error_code::bad_spec);
  EXPECT_THAT(built.error().message, HasSubstr("empty: model: is missing"));
  const test::small_training small;
  auto other = small.job().message();
  other.mutable_train()->set_epochs(-1);
  EXPECT_THAT(job_spec::build(other).error().message, HasSubstr("small: train.epochs: "));
  other.mutable_train()->set_epochs(1);
  other.mutable_data()->mutable_train()->set_records("not \xff text");
  EXPECT_FALSE(job_spec::build(other));
}

} // namespace
} // namespace dlrun
