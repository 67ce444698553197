#include "tests/simulation/minefield.hpp"

#include "actors/worker/slot_trials.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

using records = std::vector<std::uint32_t>;

records left_of(const scenario& plan, const worker::compute_gradient& order, slot_id slot) {
  records left;
  const auto left_out = parked_records(order.parked, order.step, slot);
  for (std::uint32_t record = 0; record < plan.job.records_of(order.step, slot); ++record)
    if (!std::binary_search(left_out.begin(), left_out.end(), record)) left.push_back(record);
  return left;
}

std::optional<deadly_place> death_at(const scenario& plan, const protocol::slot_progress& at,
                                     const records& computed) {
  for (const auto& one : plan.poison)
    if (one.step == at.at.step && one.slot == at.at.slot &&
        std::includes(computed.begin(), computed.end(), one.records.begin(), one.records.end()))
      return deadly_place{at, one.hangs};
  return std::nullopt;
}

} // namespace

std::optional<deadly_place> death_in(const scenario& plan, const worker::compute_gradient& order,
                                     protocol::planted_bug bug) {
  for (auto slot = order.slots.begin; slot < order.slots.end; ++slot.value) {
    if (is_parked(order.parked, order.step, slot)) continue;
    const auto left = left_of(plan, order, slot);
    protocol::slot_progress whole{{order.step, slot}};
    for (const auto& suspect : order.suspects) {
      if (suspect.slot != slot) continue;
      for (const auto& trial : worker::trials_of(suspect, left, bug))
        if (auto found = death_at(plan, {{order.step, slot, trial.blamed}, true}, trial.records))
          return found;
      whole = worker::progress_after(suspect, left);
    }
    if (auto found = death_at(plan, whole, left)) return found;
  }
  return std::nullopt;
}

std::optional<protocol::slot_progress> hunted_in(const scenario& plan,
                                                 const worker::compute_gradient& order) {
  const auto& [step, slot, times] = plan.hunted;
  const bool is_his = step == order.step && order.slots.begin <= slot && slot < order.slots.end;
  if (!is_his || is_parked(order.parked, step, slot)) return std::nullopt;
  const auto left = left_of(plan, order, slot);
  for (const auto& suspect : order.suspects)
    if (suspect.slot == slot) return protocol::slot_progress{{step, slot, left.front()}, true};
  return protocol::slot_progress{{step, slot}};
}

} // namespace dlrun::simulation
