// The words of keys that are a choice: those of the specification's rules, each read as another
// enumerator.
#include "job/choices.hpp"

#include "job/field_rules.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

/// `part` is the message of `whole` that has the key.
template <class Whole, class Choice>
void expect_choice(Whole& whole, google::protobuf::Message& part, const std::string& key,
                   Choice (*chosen)(const Whole&)) {
  const auto& field = *part.GetDescriptor()->FindFieldByName(key);
  const auto& rule = rule_of(field);
  ASSERT_GE(rule.one_of_size(), 2) << key;
  EXPECT_EQ(static_cast<int>(chosen(whole)), 0) << key << " is not set";
  if (rule.has_default_()) {
    EXPECT_EQ(rule.one_of(0), rule.default_()) << key;
  }
  for (int i = 0; i < rule.one_of_size(); ++i) {
    part.GetReflection()->SetString(&part, &field, rule.one_of(i));
    EXPECT_EQ(static_cast<int>(chosen(whole)), i) << key << ": " << rule.one_of(i);
  }
}

TEST(choices, of_a_job_are_the_words_of_their_rules) {
  spec::JobSpec spec;
  expect_choice(spec, *spec.mutable_cluster(), "placement", placement_of);
  expect_choice(spec, *spec.mutable_cluster(), "tensor_channel", tensor_channel_of);
  expect_choice(spec, *spec.mutable_cluster(), "device", device_of);
  expect_choice(spec, *spec.mutable_durability(), "log", durability_log_of);
  expect_choice(spec, *spec.mutable_durability(), "sync", durability_sync_of);
  expect_choice(spec, *spec.mutable_observability(), "log_format", log_format_of);
}

TEST(choices, of_the_number_of_stores_is_a_count_or_left_open) {
  spec::JobSpec spec;
  EXPECT_EQ(replicas_of(spec), std::nullopt);
  spec.mutable_durability()->set_replicas("auto");
  EXPECT_EQ(replicas_of(spec), std::nullopt);
  spec.mutable_durability()->set_replicas("3");
  EXPECT_EQ(replicas_of(spec), 3U);
}

TEST(choices, of_a_model_and_its_training_are_the_words_of_their_rules) {
  spec::LrScheduleSpec schedule;
  expect_choice(schedule, schedule, "unit", unit_of);
  expect_choice(*schedule.mutable_one_cycle(), *schedule.mutable_one_cycle(), "anneal_strategy",
                anneal_strategy_of);
  spec::KeepBestSpec best;
  expect_choice<spec::KeepBestSpec, metric_mode>(best, best, "mode", mode_of);
  spec::EarlyStoppingSpec stopping;
  expect_choice<spec::EarlyStoppingSpec, metric_mode>(stopping, stopping, "mode", mode_of);
  spec::Gelu gelu;
  expect_choice<spec::Gelu, gelu_approximation>(
      gelu, gelu, "approximate", +[](const spec::Gelu& one) { return *approximation_of(one); });
  gelu.set_approximate("sometimes");
  EXPECT_EQ(approximation_of(gelu), std::nullopt) << "the layer says so";
}

TEST(choices, of_a_data_set_are_the_words_of_their_rules) {
  spec::DatasetSpec data;
  expect_choice(data, data, "targets", target_kind_of);
  expect_choice(*data.mutable_csv(), *data.mutable_csv(), "delimiter", delimiter_of);
  for (const auto kind : {target_kind::classes, target_kind::values}) {
    set_target_kind(kind, data);
    EXPECT_EQ(target_kind_of(data), kind);
  }
}

TEST(choices, a_format_that_is_none_of_our_own_is_that_of_a_registered_reader) {
  spec::DatasetSpec data;
  EXPECT_EQ(format_of(data), data_format::idx) << "not set";
  int place = 0;
  for (const auto word : built_in_formats()) {
    data.set_format(std::string(word));
    EXPECT_EQ(static_cast<int>(format_of(data)), place++) << word;
  }
  EXPECT_EQ(place, static_cast<int>(data_format::registered));
  data.set_format("points");
  EXPECT_EQ(format_of(data), data_format::registered);
}

TEST(choices, of_a_column_are_the_words_of_their_rules) {
  spec::CsvColumn column;
  expect_choice(column, column, "type", type_of);
  expect_choice(column, column, "encoding", encoding_of);
  expect_choice(column, column, "order", order_of);
  expect_choice(column, column, "unknown", unknown_of);
}

TEST(choices, of_no_highest_number_of_workers_it_is_that_of_the_slots) {
  spec::JobSpec spec;
  spec.mutable_train()->set_microbatches_per_step(8);
  spec.mutable_cluster()->set_workers(2);
  EXPECT_EQ(workers_max_of(spec), 8U);
  spec.mutable_cluster()->set_workers(9);
  EXPECT_EQ(workers_max_of(spec), 9U) << "as many as there are may stay";
  spec.mutable_cluster()->set_workers_max(12);
  EXPECT_EQ(workers_max_of(spec), 12U);
}

TEST(choices_death_test, a_word_that_is_none_is_a_broken_invariant) {
  spec::JobSpec spec;
  spec.mutable_cluster()->set_placement("somewhere");
  EXPECT_DEATH(placement_of(spec), "cluster.placement is 'somewhere'");
}

} // namespace
} // namespace dlrun::job
