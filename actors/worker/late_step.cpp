#include "actors/worker/late_step.hpp"

namespace dlrun::worker {

using protocol::duration;
using protocol::time_point;

namespace {

/// What threads and messages vary by. Larger: a late step takes longer; smaller: steps of few
/// milliseconds are computed twice.
constexpr duration wait_min = std::chrono::milliseconds(20);
/// From try to try the wait doubles, but not beyond 2^6 times: 1.3 s at least.
constexpr std::uint32_t doublings_max = 6;

/// Of the newest step: after six of them an old one counts a tenth. A step that was late counts
/// twice as long as usual at most, so that lateness does not become usual at once.
duration mean_of(duration usual, duration newest) {
  return (7 * usual + 3 * std::min(newest, 2 * usual)) / 10;
}

} // namespace

void late_step::open(step_id step, time_point now) {
  if (step_ == step) return;
  if (step_ && step.value == step_->value + 1) {
    usual_ = has_seen_step_ ? mean_of(usual_, now - opened_) : now - opened_;
    has_seen_step_ = true;
  }
  step_ = step;
  opened_ = now;
  waits_since_.reset();
  had_part_ = false;
  asked_ = 0;
  is_to_ask_ = false;
  helped_ = 0;
}

/// What the step may take for all that the worker knows.
duration late_step::reference() const { return had_part_ ? *waits_since_ - opened_ : usual_; }

time_point late_step::due() const {
  if (is_to_ask_) return opened_;
  const auto wait = std::max(wait_min, slot_ + reference() / 4);
  if (asked_ == 0) return opened_ + reference() + wait;
  return asked_at_ + wait * (1 << std::min(asked_, doublings_max));
}

/// Who has just helped asks as before: it is offered what nobody else has.
std::uint32_t late_step::ask(time_point now) {
  asked_at_ = now;
  if (!std::exchange(is_to_ask_, false)) ++asked_;
  return asked_;
}

} // namespace dlrun::worker
