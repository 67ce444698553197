#include "inference/model_source.hpp"

#include "actors/common/history_conversion.hpp"
#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::inference {
namespace {

using testing::HasSubstr;

/// A run of four steps that is over: a log, and nothing of its data.
class model_source_test : public testing::Test {
protected:
  model_source_test() {
    EXPECT_TRUE(job::write_spec_file(folder.path() / "spec.yaml", job->spec));
    persistence::shard_store_options options;
    options.directory = common::store_directory(folder.path(), {0}).string();
    options.opener = {1};
    const auto store = persistence::shard_store::open(options).value();
    test::training_shard shard{job};
    for (int step = 0; step < 4; ++step) shard.train();
    const auto image = shard.parameters.begin_image(1);
    const common::snapshot_extra extra{shard.parameters.range(), image->floats(), shard.metrics.sums(),
                                       shard.ledger};
    EXPECT_TRUE(ps_shard::write_snapshot(*store, shard.version, {0}, *image, extra, [] { return true; }));
    const auto floats = shard.parameters.current();
    trained.assign(floats.begin(), floats.end());
  }
  result<loaded_model> load(std::vector<std::string> overrides = {}) const {
    const auto file = folder.path() / "spec.yaml";
    const auto spec = job::read_spec(file).value();
    return load_run({.folder = folder.path(), .revisions = {spec}, .as_written = spec, .spec_file = file},
                    {.path = folder.path().string(), .overrides = std::move(overrides)});
  }
  /// Its tensors, without the metrics, are those of the training.
  void expect_trained(const loaded_model& model) const {
    for (const auto& tensor : model.model->layout().tensors()) {
      if (tensor.kind == tensor_kind::metric) continue;
      EXPECT_TRUE(std::ranges::equal(std::span{model.parameters}.subspan(tensor.offset, tensor.size),
                                     std::span{trained}.subspan(tensor.offset, tensor.size)))
          << tensor.name;
    }
    EXPECT_EQ(model.parameters.size(), model.model->layout().flat_size());
  }

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  std::vector<float> trained;
};

TEST_F(model_source_test, a_snapshot_is_loaded_without_the_data) {
  const auto model = load();
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->version, version_id{4});
  expect_trained(*model);
}

TEST_F(model_source_test, metrics_that_were_not_trained_with_are_no_other_model) {
  for (const auto* metrics :
       {"model.metrics=[accuracy, recall]", "model.metrics=[precision]", "model.metrics=[]"}) {
    const auto model = load({metrics});
    ASSERT_TRUE(model) << metrics << ": " << model.error().message;
    expect_trained(*model);
  }
  EXPECT_EQ(load({"model.metrics=[recall]"})->model->metrics().names(), (std::vector<std::string>{"recall"}));
}

TEST_F(model_source_test, what_has_no_parameters_may_be_changed) {
  for (const auto* change :
       {"train.optimizer={adam: {lr: 0.1}}", "cluster.ps_shards=2", "train.seed=9", "durability.log=off"}) {
    const auto model = load({change});
    ASSERT_TRUE(model) << change << ": " << model.error().message;
    expect_trained(*model);
  }
}

TEST_F(model_source_test, another_model_is_refused_naming_the_tensor) {
  const auto wider = load({"model.layers[0].linear.out_features=21"});
  ASSERT_FALSE(wider);
  EXPECT_EQ(wider.error().code, error_code::bad_usage);
  EXPECT_THAT(wider.error().message, HasSubstr("'linear0.weight'"));
  const auto deeper = load({"model.layers=[{linear: {out_features: 20}}, {linear: {out_features: 20}}]"});
  ASSERT_FALSE(deeper);
  EXPECT_THAT(deeper.error().message, HasSubstr("'linear1.weight'"));
  EXPECT_THAT(load({"model.metrics=[mae]"}).error().message, HasSubstr("mae")) << "it does not fit the loss";
}

TEST_F(model_source_test, the_folder_of_somebody_else_is_read_without_any_right_to_write) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    ASSERT_EQ(::chmod(entry.path().c_str(), entry.is_directory() ? 0555 : 0444), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const auto user = ::geteuid();
  // Whom permissions do not stop would test nothing.
  ASSERT_TRUE(user != 0 || ::seteuid(65534) == 0);
  const auto model = load();
  ASSERT_TRUE(user != 0 || ::seteuid(user) == 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    ::chmod(entry.path().c_str(), 0755);
  ::chmod(folder.path().c_str(), 0755);
  ASSERT_TRUE(model) << model.error().message;
  expect_trained(*model);
}

TEST_F(model_source_test, records_are_read_as_the_training_read_them_whatever_is_overridden) {
  const auto moved = load({"data.train.records=elsewhere"});
  EXPECT_TRUE(moved) << moved.error().message;
  const auto refused = load({"data.train.normalize={mean: 0.5}"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.error().message, HasSubstr("data.train.normalize.mean[0] was 0, and is 0.5"));
}

} // namespace
} // namespace dlrun::inference
