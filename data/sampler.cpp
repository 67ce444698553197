#include "data/sampler.hpp"

#include "data/permutation.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::data {
namespace {

std::uint64_t ceil_div(std::uint64_t value, std::uint64_t by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

} // namespace

sampler_options sampler_options_from(const spec::TrainSpec& train, std::uint64_t record_count) {
  return {.seed = train.seed(),
          .shuffle = train.shuffle(),
          .record_count = record_count,
          .microbatch_size = static_cast<std::uint64_t>(train.microbatch_size()),
          .microbatches_per_step = static_cast<std::uint32_t>(train.microbatches_per_step()),
          .epochs = static_cast<std::uint64_t>(train.epochs())};
}

sampler::sampler(const sampler_options& options)
    : options_(options)
    , records_per_step_(options.microbatch_size * options.microbatches_per_step)
    , steps_per_epoch_(0) {
  DLRUN_CHECK(options.record_count >= 1 && options.microbatch_size >= 1 &&
                  options.microbatches_per_step >= 1 && options.epochs >= 1,
              "nothing to sample: {} records, microbatches of {}, {} a step, {} epochs", options.record_count,
              options.microbatch_size, options.microbatches_per_step, options.epochs);
  DLRUN_CHECK(records_per_step_ / options.microbatches_per_step == options.microbatch_size,
              "a step of {} x {} records", options.microbatches_per_step, options.microbatch_size);
  steps_per_epoch_ = ceil_div(options.record_count, records_per_step_);
  std::uint64_t total = 0;
  DLRUN_CHECK(!__builtin_mul_overflow(steps_per_epoch_, options.epochs, &total) && total >> 63 == 0,
              "{} epochs of {} steps", options.epochs, steps_per_epoch_);
}

std::uint64_t sampler::epoch_of(step_id step) const {
  DLRUN_CHECK(step.value < total_steps(), "step {} of {}", step, total_steps());
  return step.value / steps_per_epoch_;
}

sampler::range sampler::step_range(step_id step) const {
  DLRUN_CHECK(step.value < total_steps(), "step {} of {}", step, total_steps());
  const std::uint64_t begin = step.value % steps_per_epoch_ * records_per_step_;
  return {begin, std::min(begin + records_per_step_, options_.record_count)};
}

sampler::range sampler::slot_range(step_id step, slot_id slot) const {
  DLRUN_CHECK(slot.value < options_.microbatches_per_step, "slot {} of {}", slot,
              options_.microbatches_per_step);
  const range whole = step_range(step);
  const std::uint64_t begin = std::min(whole.begin + slot.value * options_.microbatch_size, whole.end);
  return {begin, std::min(begin + options_.microbatch_size, whole.end)};
}

std::uint32_t sampler::slots(step_id step) const {
  return static_cast<std::uint32_t>(ceil_div(records_in_step(step), options_.microbatch_size));
}

std::uint64_t sampler::records_in_step(step_id step) const {
  const range whole = step_range(step);
  return whole.end - whole.begin;
}

std::uint64_t sampler::records_in_slot(step_id step, slot_id slot) const {
  const range part = slot_range(step, slot);
  return part.end - part.begin;
}

/// Only the last step of an epoch is a partial one.
std::uint64_t sampler::records_up_to(version_id version) const {
  return version.value / steps_per_epoch_ * options_.record_count +
         version.value % steps_per_epoch_ * records_per_step_;
}

void sampler::records(step_id step, slot_id slot, std::vector<std::uint64_t>& out) const {
  const range part = slot_range(step, slot);
  out.clear();
  if (!options_.shuffle) {
    for (std::uint64_t i = part.begin; i < part.end; ++i) out.push_back(i);
    return;
  }
  const permutation shuffled(options_.seed, epoch_of(step), options_.record_count);
  for (std::uint64_t i = part.begin; i < part.end; ++i) out.push_back(shuffled(i));
}

validation_sampler::validation_sampler(std::uint64_t record_count, std::uint64_t microbatch_size)
    : record_count_(record_count)
    , microbatch_size_(microbatch_size) {
  DLRUN_CHECK(record_count >= 1 && microbatch_size >= 1,
              "nothing to validate: {} records, microbatches of {}", record_count, microbatch_size);
}

std::uint64_t validation_sampler::slots() const { return ceil_div(record_count_, microbatch_size_); }

std::uint64_t validation_sampler::records_in_slot(std::uint64_t slot) const {
  DLRUN_CHECK(slot < slots(), "validation slot {} of {}", slot, slots());
  return std::min(microbatch_size_, record_count_ - slot * microbatch_size_);
}

void validation_sampler::records(std::uint64_t slot, std::vector<std::uint64_t>& out) const {
  const std::uint64_t count = records_in_slot(slot);
  out.clear();
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(slot * microbatch_size_ + i);
}

} // namespace dlrun::data
