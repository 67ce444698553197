#include "engine/schedule.hpp"

#include "job/choices.hpp"
#include "proto/job_spec.pb.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <vector>

namespace dlrun::engine {
namespace {

/// From `start` at part 0 to `end` at part 1, along half a cosine.
double cosine_between(double start, double end, double part) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * part));
}

double line_between(double start, double end, double part) { return (end - start) * part + start; }

/// OneCycleLR: up from max_lr / div_factor until pct_start of the training, then down to that /
/// final_div_factor (L. Smith and N. Topin, "Super-Convergence", 2019). The learning rate of the
/// optimizer is not used, as in PyTorch.
class one_cycle {
public:
  one_cycle(const spec::OneCycleLr& spec, std::uint64_t units)
      : max_(spec.max_lr())
      , first_(max_ / (spec.has_div_factor() ? spec.div_factor() : 25))
      , last_(first_ / (spec.has_final_div_factor() ? spec.final_div_factor() : 1e4))
      , top_((spec.has_pct_start() ? spec.pct_start() : 0.3) * static_cast<double>(units) - 1)
      , end_(static_cast<double>(units) - 1)
      , between_(job::anneal_strategy_of(spec) == job::anneal_strategy::linear ? line_between
                                                                               : cosine_between) {}

  double operator()(double, std::uint64_t n) const {
    const auto at = static_cast<double>(n);
    if (at <= top_) return between_(first_, max_, part(0, at, top_));
    return between_(max_, last_, part(top_, at, end_));
  }

private:
  /// A phase of no length is over.
  static double part(double begin, double at, double end) {
    return end > begin ? std::min((at - begin) / (end - begin), 1.0) : 1;
  }

  double max_, first_, last_;
  double top_, end_; ///< units at which the phases end
  double (*between_)(double start, double end, double part);
};

std::function<double(double, std::uint64_t)> make_curve(const spec::LrScheduleSpec& spec,
                                                        std::uint64_t units) {
  switch (spec.kind_case()) {
  case spec::LrScheduleSpec::kStep:
    return [size = static_cast<std::uint64_t>(spec.step().step_size()),
            gamma = spec.step().has_gamma() ? spec.step().gamma() : 0.1](double base, std::uint64_t n) {
      const std::uint64_t changes = n / size;
      return base * std::pow(gamma, static_cast<double>(changes));
    };
  case spec::LrScheduleSpec::kMultiStep:
    return [milestones = std::vector<std::uint64_t>(spec.multi_step().milestones().begin(),
                                                    spec.multi_step().milestones().end()),
            gamma = spec.multi_step().has_gamma() ? spec.multi_step().gamma() : 0.1](double base,
                                                                                     std::uint64_t n) {
      const auto passed = std::ranges::upper_bound(milestones, n) - milestones.begin();
      return base * std::pow(gamma, static_cast<double>(passed));
    };
  case spec::LrScheduleSpec::kExponential:
    return [gamma = spec.exponential().gamma()](double base, std::uint64_t n) {
      return base * std::pow(gamma, static_cast<double>(n));
    };
  case spec::LrScheduleSpec::kCosine: {
    const auto& cosine = spec.cosine();
    const auto t_max = cosine.has_t_max() ? static_cast<double>(cosine.t_max()) : static_cast<double>(units);
    return [t_max, eta_min = cosine.eta_min()](double base, std::uint64_t n) {
      return cosine_between(base, eta_min, static_cast<double>(n) / t_max);
    };
  }
  case spec::LrScheduleSpec::kOneCycle: return one_cycle{spec.one_cycle(), units};
  case spec::LrScheduleSpec::kConstant:
  case spec::LrScheduleSpec::KIND_NOT_SET: break;
  }
  return [](double base, std::uint64_t) { return base; };
}

} // namespace

result<schedule> schedule::build(const spec::LrScheduleSpec& spec, const training_length& length) {
  const auto& milestones = spec.multi_step().milestones();
  if (std::ranges::adjacent_find(milestones, std::greater_equal<>{}) != milestones.end())
    return fail(error_code::bad_spec, "train.lr_schedule.multi_step.milestones must ascend, each larger than "
                                      "the one before, e.g. [30, 80]");
  const bool per_epoch = job::unit_of(spec) == job::lr_unit::epoch;
  schedule built;
  built.steps_per_unit_ = per_epoch ? length.steps_per_epoch : 1;
  built.curve_ = make_curve(spec, per_epoch ? length.epochs : length.epochs * length.steps_per_epoch);
  built.warmup_steps_ = static_cast<std::uint64_t>(std::max<std::int64_t>(spec.warmup_steps(), 0));
  built.start_factor_ = spec.has_start_factor() ? spec.start_factor() : 1.0 / 3;
  return built;
}

double schedule::lr(step_id step, double base) const {
  const double lr = curve_(base, step.value / steps_per_unit_);
  if (step.value >= warmup_steps_) return lr;
  const auto part = static_cast<double>(step.value) / static_cast<double>(warmup_steps_);
  return lr * (start_factor_ + (1 - start_factor_) * part);
}

} // namespace dlrun::engine
