/// The learning rate of each step, as a pure function of the step.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <functional>

namespace dlrun::spec {
class LrScheduleSpec;
}

namespace dlrun::engine {

/// How long a training is.
struct training_length {
  std::uint64_t steps_per_epoch = 1;
  std::uint64_t epochs = 1;
};

/// The closed forms of PyTorch's schedules (torch/optim/lr_scheduler.py of 1.13): StepLR,
/// MultiStepLR, ExponentialLR, CosineAnnealingLR, OneCycleLR (without its cycle of the momentum),
/// and LinearLR as a warm-up in front of any of them. In double precision. It has no state, so a
/// training that goes on elsewhere, or goes back, needs nothing of it. Thread-safe.
class schedule {
public:
  /// A specification of no kind is `constant`. Errors (bad_spec): milestones that do not ascend.
  static result<schedule> build(const spec::LrScheduleSpec& spec, const training_length& length);

  /// The learning rate of `step`, where `base` is the optimizer's. With `unit: epoch` it is one for
  /// all steps of an epoch, as if PyTorch's step() was called after each.
  double lr(step_id step, double base) const;

private:
  /// Of the base learning rate and the number of units (steps or epochs) that are over.
  using curve = std::function<double(double base, std::uint64_t n)>;

  curve curve_;
  std::uint64_t steps_per_unit_ = 1;
  std::uint64_t warmup_steps_ = 0;
  double start_factor_ = 1;
};

} // namespace dlrun::engine
