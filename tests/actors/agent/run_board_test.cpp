#include "actors/agent/run_board.hpp"

#include "actors/protocol/bit_patterns.hpp"
#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::agent {
namespace {

/// Accuracy, and the share among the two greatest.
std::shared_ptr<const engine::model> three_classes() {
  spec::ModelSpec spec;
  spec.add_input(3);
  spec.add_layers()->mutable_relu();
  spec.add_metrics()->mutable_accuracy();
  spec.add_metrics()->mutable_top_k()->set_k(2);
  return engine::model::build(spec).value();
}

protocol::training_metrics sums_of(double loss, std::uint64_t records, const std::vector<double>& sums) {
  return {.epoch = 3,
          .loss_sum_bits = std::bit_cast<std::uint64_t>(loss),
          .records = records,
          .step_loss_bits = std::bit_cast<std::uint64_t>(0.125),
          .sum_bits = protocol::to_bits(sums)};
}

TEST(run_board, metrics_are_shown_by_name) {
  const auto model = three_classes();
  run_snapshot snapshot;
  snapshot.train = progress_of(sums_of(20, 40, {30, 40, 38, 40}), model->metrics(), 7);
  EXPECT_EQ(snapshot.train->step, 7U);
  EXPECT_EQ(snapshot.train->step_loss, 0.125);
  const auto shown = nlohmann::json::parse(to_json(snapshot));
  EXPECT_EQ(shown["train"].dump(), R"({"accuracy":0.75,"epoch":3,"loss":0.5,"top2":0.95})");
}

TEST(run_board, what_is_not_known_is_null) {
  EXPECT_TRUE(nlohmann::json::parse(to_json(run_snapshot{})).at("train").is_null())
      << "before the first step";
  run_snapshot snapshot;
  snapshot.train = progress_of(sums_of(std::nan(""), 40, {1}), three_classes()->metrics(), 1);
  const auto shown = nlohmann::json::parse(to_json(snapshot));
  EXPECT_TRUE(shown["train"]["loss"].is_null());
  EXPECT_TRUE(shown["train"]["accuracy"].is_null()) << "of another number of sums";
}

} // namespace
} // namespace dlrun::agent
