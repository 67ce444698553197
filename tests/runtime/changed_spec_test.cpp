#include "runtime/changed_spec.hpp"

#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

using overrides = std::vector<std::string>;

/// A run with `before` over the smallest specification, gone on with `changes`.
result<spec_change> change(const overrides& changes, const overrides& before = {}) {
  auto all = before;
  all.insert(all.end(), changes.begin(), changes.end());
  const auto old = test::parse(test::minimal_spec, before);
  const auto changed = test::parse(test::minimal_spec, all);
  if (!old) return tl::unexpected(old.error());
  if (!changed) return tl::unexpected(changed.error());
  return compare_specs(*old, *changed);
}

/// What is said when it is refused; "" when it is not.
std::string refusal(const overrides& changes, const overrides& before = {}) {
  const auto compared = change(changes, before);
  if (compared) return "";
  EXPECT_EQ(compared.error().code, error_code::bad_usage) << compared.error().message;
  return compared.error().message;
}

constexpr auto with_momentum = "train.optimizer={sgd: {lr: 0.05, momentum: 0.9}}";

TEST(changed_spec, the_same_is_no_change) {
  EXPECT_EQ(change({}), spec_change::none);
  EXPECT_EQ(change({"cluster.workers=2", "train.optimizer.sgd.lr=0.05"}), spec_change::none);
}

TEST(changed_spec, what_changes_no_bit_is_free) {
  for (const auto* one :
       {"cluster.workers=7", "data.train.records=elsewhere", "data.memory_limit=1GiB",
        "cluster.placement=threads", "cluster.tensor_channel=tcp", "cluster.restart.intensity=3",
        "cluster.restart.period_s=1", "cluster.gpus=[1, 0]", "durability.sync=power",
        "durability.max_recovery=2s", "durability.disk_quota=1GB", "observability.prometheus_port=9464",
        "observability.tensorboard=true", "observability.log_format=json"})
    EXPECT_EQ(change({one}), spec_change::free) << one << refusal({one});
  EXPECT_EQ(change({"cluster.workers=7", "durability.sync=power"}), spec_change::free);
}

TEST(changed_spec, another_device_computes_other_bits) {
  EXPECT_THAT(refusal({"cluster.device=cuda"}, {"cluster.device=cpu"}),
              HasSubstr("cluster.device: cpu -> cuda"));
  EXPECT_THAT(refusal({"cluster.device=cpu"}, {"cluster.device=cuda"}),
              HasSubstr("cluster.device: cuda -> cpu"));
}

TEST(changed_spec, another_precision_computes_other_bits) {
  EXPECT_THAT(refusal({"train.precision=tf32"}), HasSubstr("train.precision: fp32 -> tf32"));
  EXPECT_THAT(refusal({"train.precision=fp32"}, {"train.precision=tf32"}),
              HasSubstr("train.precision: tf32 -> fp32"));
  EXPECT_THAT(refusal({"train.precision=tf32"}, {"train.precision=bf16"}),
              HasSubstr("train.precision: bf16 -> tf32"));
}

TEST(changed_spec, the_same_weights_may_lie_elsewhere_but_not_be_others) {
  const auto digest = [](char digit) { return "train.init_sha256='" + std::string(64, digit) + "'"; };
  const overrides before{"train.init_from=a", digest('1')};
  EXPECT_EQ(change({"train.init_from=b"}, before), spec_change::free);
  EXPECT_NE(refusal({"train.init_from=b", digest('2')}, before), "");
  EXPECT_NE(refusal({"train.init_from=b"}), ""); // there was none
  EXPECT_NE(refusal({"train.init_strict=false"}, before), "");
}

TEST(changed_spec, other_numbers_of_the_optimizer_are_a_revision) {
  EXPECT_EQ(change({"train.optimizer.sgd.lr=0.01"}), spec_change::revision);
  EXPECT_EQ(change({"train.optimizer.sgd.momentum=0.5"}, {with_momentum}), spec_change::revision);
  for (const auto* one : {"lr=0.1", "eps=0.1", "betas=[0.8, 0.9]"})
    EXPECT_EQ(change({std::string{"train.optimizer.adam."} + one}, {"train.optimizer=adam"}),
              spec_change::revision)
        << one;
  EXPECT_EQ(change({"cluster.workers=7", "train.optimizer.sgd.lr=0.01"}), spec_change::revision);
}

/// Adam's moments are not momentum, and neither can be made of nothing.
TEST(changed_spec, an_optimizer_with_another_state_is_refused) {
  EXPECT_THAT(refusal({"train.optimizer=adam"}), HasSubstr("train.optimizer: sgd -> adam"));
  EXPECT_THAT(refusal({"train.optimizer={sgd: {lr: 0.1}}"}, {"train.optimizer=adam"}),
              HasSubstr("train.optimizer: adam -> sgd"));
  EXPECT_THAT(refusal({"train.optimizer.sgd.momentum=0.9"}), HasSubstr("train.optimizer.sgd.momentum"));
  EXPECT_THAT(refusal({"train.optimizer.sgd.momentum=0"}, {with_momentum}),
              HasSubstr("train.optimizer.sgd.momentum"));
}

TEST(changed_spec, nothing_that_is_state_comes_or_goes) {
  const std::pair<const char*, const char*> refused[] = {{"adam", "adam.amsgrad=true"},
                                                         {"adamw", "adamw.amsgrad=true"},
                                                         {"rmsprop", "rmsprop.centered=true"},
                                                         {"rmsprop", "rmsprop.momentum=0.9"},
                                                         {"adam", "adamw={}"},
                                                         {"adagrad", "adagrad.initial_accumulator_value=0.5"},
                                                         {"{sgd: {lr: 0.05}}", "sgd.momentum=1"}};
  for (const auto& [before, changed] : refused) {
    const auto key = std::string{"train.optimizer."} + changed;
    const auto whole = std::string{changed} == "adamw={}" ? std::string{"train.optimizer=adamw"} : key;
    EXPECT_THAT(refusal({whole}, {std::string{"train.optimizer="} + before}),
                HasSubstr("an optimizer keeps its kind"))
        << changed;
  }
  for (const auto* one : {"adagrad.lr_decay=0.5", "adagrad.eps=0.1", "adagrad.weight_decay=1"})
    EXPECT_EQ(change({std::string{"train.optimizer."} + one}, {"train.optimizer=adagrad"}),
              spec_change::revision)
        << one;
  EXPECT_EQ(change({"train.optimizer.sgd.nesterov=true"}, {with_momentum}), spec_change::revision);
}

TEST(changed_spec, schedule_and_clipping_are_a_revision) {
  for (const auto* one : {"train.lr_schedule=cosine", "train.lr_schedule={exponential: {gamma: 0.9}}",
                          "train.clip_norm=1", "train.clip_value=0.5"})
    EXPECT_EQ(change({one}), spec_change::revision) << one << refusal({one});
  EXPECT_EQ(change({"train.clip_norm=2"}, {"train.clip_norm=1"}), spec_change::revision);
  EXPECT_EQ(change({"train.lr_schedule.warmup_steps=10"}, {"train.lr_schedule=constant"}),
            spec_change::revision);
  EXPECT_EQ(change({"train.lr_schedule.cosine.eta_min=0.1"}, {"train.lr_schedule=cosine"}),
            spec_change::revision);
}

TEST(changed_spec, slots_can_be_skipped_and_stay_skipped) {
  EXPECT_EQ(change({"train.skip=['3:1']"}), spec_change::revision);
  EXPECT_EQ(change({"train.skip=['3:1', '0:2']"}, {"train.skip=['3:1']"}), spec_change::revision);
  EXPECT_THAT(refusal({"train.skip=[]"}, {"train.skip=['3:1']"}), HasSubstr("train.skip"));
  EXPECT_THAT(refusal({"train.skip=['0:2']"}, {"train.skip=['3:1']"}), HasSubstr("train.skip"));
}

TEST(changed_spec, a_step_to_go_on_from_is_a_revision) {
  EXPECT_EQ(change({"train.from=7"}), spec_change::revision);
  EXPECT_EQ(change({"train.from=3"}, {"train.from=7"}), spec_change::revision);
}

TEST(changed_spec, everything_else_is_refused_naming_the_key) {
  const std::pair<const char*, const char*> refused[] = {
      {"name=other", "name: job -> other"},
      {"model.input=[1, 28, 29]", "model.input[2]: 28 -> 29"},
      {"model.layers[1].linear.out_features=11", "model.layers[1].linear.out_features: 10 -> 11"},
      {"data.validation={split: 0.1}", "data.validation: nothing -> {"},
      {"data.train.normalize.mean=0.5", "data.train.normalize.mean[0]: 0 -> 0.5"},
      {"data.validation={records: images, labels: labels}", "data.validation"},
      {"train.epochs=2", "train.epochs: 1 -> 2"},
      {"train.microbatch_size=16", "train.microbatch_size: 32 -> 16"},
      {"train.microbatches_per_step=8", "train.microbatches_per_step: 4 -> 8"},
      {"train.seed=2", "train.seed: 1 -> 2"},
      {"train.shuffle=false", "train.shuffle: true -> false"},
      {"cluster.ps_shards=3", "cluster.ps_shards: 2 -> 3"},
      {"cluster.threads_per_worker=2", "cluster.threads_per_worker: 1 -> 2"},
      {"durability.log=off", "durability.log: auto -> \"off\""}};
  for (const auto& [changed, named] : refused) EXPECT_THAT(refusal({changed}), HasSubstr(named)) << changed;
}

TEST(changed_spec, a_refusal_says_what_can_be_changed_and_blames_nothing_that_can) {
  const auto said = refusal({"cluster.workers=7", "train.seed=2", "train.optimizer.sgd.lr=0.01"});
  for (const auto* one : {"train.optimizer, train.lr_schedule, train.clip_value, train.clip_norm",
                          "cluster.workers", "durability.disk_quota", "observability"})
    EXPECT_THAT(said, HasSubstr(one));
  EXPECT_THAT(said, HasSubstr("train.seed: 1 -> 2"));
  EXPECT_THAT(said, Not(HasSubstr("2 -> 7")));
  EXPECT_THAT(said, Not(HasSubstr("0.01")));
}

} // namespace
} // namespace dlrun::runtime
