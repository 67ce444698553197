#include "actors/ps_shard/ledger.hpp"

#include <algorithm>

namespace dlrun::ps_shard {

using protocol::slot_range;

coverage::coverage(slot_range slots) { append(slots, 1); }

void coverage::append(slot_range slots, std::uint32_t times) {
  if (slots.empty() || times == 0) return;
  if (!runs_.empty() && runs_.back().slots.end == slots.begin && runs_.back().times == times)
    runs_.back().slots.end = slots.end;
  else
    runs_.push_back({slots, times});
}

void coverage::add(const coverage& other) {
  coverage sum;
  auto left = runs_.begin();
  auto right = other.runs_.begin();
  slot_id at{};
  while (left != runs_.end() || right != other.runs_.end()) {
    // [at, next) is the longest piece in which neither side changes.
    slot_id next{UINT32_MAX};
    std::uint32_t times = 0;
    const auto look = [&](auto side, auto end) {
      if (side == end) return;
      if (at < side->slots.begin) {
        next = std::min(next, side->slots.begin);
      } else {
        next = std::min(next, side->slots.end);
        times += side->times;
      }
    };
    look(left, runs_.end());
    look(right, other.runs_.end());
    sum.append({at, next}, times);
    at = next;
    if (left != runs_.end() && left->slots.end == at) ++left;
    if (right != other.runs_.end() && right->slots.end == at) ++right;
  }
  runs_ = std::move(sum.runs_);
}

std::uint32_t coverage::count(slot_id slot) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), slot, [](slot_id wanted, const run& one) {
    return wanted < one.slots.begin;
  });
  if (after == runs_.begin()) return 0;
  const auto& one = *std::prev(after);
  return slot < one.slots.end ? one.times : 0;
}

bool coverage::touches(slot_range slots) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const run& one) { return one.slots.overlaps(slots); });
}

void ledger::restart(const protocol::applied_ledger& totals, step_id next) {
  const auto before = totals_;
  totals_ = totals;
  totals_.steps_applied = std::max(before.steps_applied, totals.steps_applied);
  totals_.steps_redone = std::max(before.steps_redone, totals.steps_redone);
  next_step_ = std::max(next_step_, next.value);
}

void ledger::applied(step_id step, const coverage& value, const std::vector<std::uint64_t>& records_of_slot) {
  ++totals_.steps_applied;
  if (step.value < next_step_) ++totals_.steps_redone;
  next_step_ = std::max(next_step_, step.value + 1);
  for (std::uint32_t slot = 0; slot < records_of_slot.size(); ++slot) {
    const auto records = records_of_slot[slot];
    const auto times = value.count({slot});
    if (times == 0)
      totals_.samples_missing += records;
    else
      totals_.samples_applied += records;
    if (times > 1) totals_.samples_duplicated += records * (times - 1);
  }
}

} // namespace dlrun::ps_shard
