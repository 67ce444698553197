#include "observability/sample_rate.hpp"

#include <algorithm>

namespace dlrun::observability {
namespace {

constexpr auto rate_period = std::chrono::milliseconds(500);
constexpr double rate_smoothing = 0.5;

} // namespace

double sample_rate::at_step(std::uint64_t step, protocol::time_point at) {
  if (!at_) {
    if (step > 0) at_ = at, step_ = step;
    return 0;
  }
  if (step < step_) at_ = at, step_ = step; // after a rewind
  const auto elapsed = at - *at_;
  if (elapsed < rate_period) return rate_;
  // A step that takes long is measured when it is there; until then it is as slow as if it came
  // now.
  if (step == step_)
    return std::min(rate_, static_cast<double>(records_per_step_) / protocol::to_seconds(elapsed));
  const auto recent = static_cast<double>((step - step_) * records_per_step_) / protocol::to_seconds(elapsed);
  rate_ = rate_ == 0 ? recent : rate_smoothing * rate_ + (1 - rate_smoothing) * recent;
  at_ = at;
  step_ = step;
  return rate_;
}

} // namespace dlrun::observability
