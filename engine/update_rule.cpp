#include "engine/update_rule.hpp"

#include "kernels/cpu/update.hpp"
#include "proto/job_spec.pb.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

float mean_scale(std::uint64_t records) { return 1.0F / static_cast<float>(records); }

float limit_of(const std::optional<double>& clip_value) {
  return clip_value ? static_cast<float>(*clip_value) : std::numeric_limits<float>::infinity();
}

/// @returns nothing when it is not written.
result<std::optional<double>> limit_from(const char* key, bool written, double value) {
  if (!written) return std::nullopt;
  if (std::isfinite(value) && value >= std::numeric_limits<float>::min()) return value;
  return fail(
      error_code::bad_spec,
      fmt::format(
          "train.{} is {}, but must be a finite number of at least {:.2g}: with less, gradients are 0 "
          "in float, and nothing is learnt; leave it out to clip nothing",
          key, value, std::numeric_limits<float>::min()));
}

} // namespace

result<update_rule> update_rule::build(const spec::TrainSpec& spec, const training_length& length) {
  auto optimizer = engine::optimizer::build(spec.optimizer());
  if (!optimizer) return tl::unexpected(optimizer.error());
  auto schedule = engine::schedule::build(spec.lr_schedule(), length);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto clip_value = limit_from("clip_value", spec.has_clip_value(), spec.clip_value());
  if (!clip_value) return tl::unexpected(clip_value.error());
  const auto clip_norm = limit_from("clip_norm", spec.has_clip_norm(), spec.clip_norm());
  if (!clip_norm) return tl::unexpected(clip_norm.error());
  update_rule built{std::move(*optimizer), std::move(*schedule)};
  built.clip_value_ = *clip_value;
  built.clip_norm_ = *clip_norm;
  return built;
}

double update_rule::sum_of_squares(std::uint64_t records, std::span<const float> gradient_sum) const {
  return kernels::cpu::sum_of_squares({mean_scale(records), limit_of(clip_value_)}, gradient_sum);
}

/// clip_grad_norm_: max_norm / (norm + 1e-6), at most 1. A norm that is no number makes the
/// gradient none.
float update_rule::coefficient(double norm) const {
  if (!clip_norm_) return 1;
  const double wanted = *clip_norm_ / (norm + 1e-6);
  return wanted > 1 ? 1.0F : static_cast<float>(wanted);
}

bool update_rule::update(const summed_step& step, std::span<const float> gradient_sum,
                         std::span<const float> parameters_in, std::span<float> parameters_out,
                         const kernels::cpu::update_state& state) const {
  const update_terms terms{
      step.step,   lr(step.step), mean_scale(step.records), limit_of(clip_value_), coefficient(step.norm),
      step.streams};
  return optimizer_.update(terms, gradient_sum, parameters_in, parameters_out, state);
}

} // namespace dlrun::engine
