/// A run as those who show it see it.
#pragma once

#include "actors/agent/run_board.hpp"
#include "actors/protocol/time.hpp"
#include "observability/run_facts.hpp"
#include "proto/job_spec.pb.h"

#include <bit>
#include <string>
#include <vector>

namespace dlrun::test {

inline constexpr protocol::time_point begin{std::chrono::seconds(1000)};

/// 100 records in steps of 8 (13 steps, the last of 4), 10 epochs; the rate is halved each epoch.
inline observability::run_facts watched_run(const std::filesystem::path& run_dir) {
  spec::TrainSpec train;
  train.set_epochs(10);
  train.set_microbatch_size(4);
  train.set_microbatches_per_step(2);
  train.mutable_optimizer()->mutable_sgd()->set_lr(0.5);
  train.mutable_lr_schedule()->set_unit("epoch");
  train.mutable_lr_schedule()->mutable_exponential()->set_gamma(0.5);
  const data::sampler sampler{data::sampler_options_from(train, 100)};
  return {"mlp", run_dir, sampler,
          engine::update_rule::build(train, {sampler.steps_per_epoch(), 10}).value()};
}

/// After `step` steps: a loss of 1 / step, and accuracy.
inline agent::run_snapshot at_step(std::uint64_t step) {
  agent::run_snapshot now;
  now.job = "mlp";
  now.step = step;
  now.durable_step = step / 2;
  now.steps = 130;
  if (step > 0)
    now.train = {.step = step,
                 .step_loss = 1.0 / static_cast<double>(step),
                 .epoch = (step - 1) / 13,
                 .loss = 0.25,
                 .metrics = {{"accuracy", 0.75}}};
  return now;
}

inline protocol::job_event event_of(std::string name, protocol::event_numbers numbers) {
  protocol::job_event event;
  event.event = std::move(name);
  event.numbers = std::move(numbers);
  return event;
}

inline protocol::job_event rewind_to(std::uint64_t version) {
  return event_of("rewind", {.has_step = true, .step = version});
}

inline protocol::job_event evaluated(std::uint64_t version, double loss, double accuracy) {
  return event_of("evaluated", {.has_step = true,
                                .step = version,
                                .values = {{"loss", std::bit_cast<std::uint64_t>(loss)},
                                           {"accuracy", std::bit_cast<std::uint64_t>(accuracy)}}});
}

} // namespace dlrun::test
