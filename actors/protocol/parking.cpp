#include "actors/protocol/parking.hpp"

#include <fmt/format.h>

namespace dlrun::protocol {
namespace {

/// The entries of one slot; one that names the whole slot comes last.
auto entries_of(const parked_slots_list& all, step_id step, slot_id slot) {
  const auto begin = std::lower_bound(all.begin(), all.end(), parked_slot{step, slot, 0});
  const auto end = std::upper_bound(begin, all.end(), parked_slot{step, slot, all_records});
  return std::pair{begin, end};
}

/// @returns whether it was not there.
bool insert(parked_slots_list& all, const parked_slot& what) {
  const auto at = std::lower_bound(all.begin(), all.end(), what);
  if (at != all.end() && *at == what) return false;
  all.insert(at, what);
  return true;
}

} // namespace

std::string to_string(const parked_slot& what) {
  return what.is_whole() ? fmt::format("{}:{}", what.step, what.slot)
                         : fmt::format("{}:{}:{}", what.step, what.slot, what.record);
}

std::string describe(const parked_slot& what) {
  const auto slot = fmt::format("slot {} of step {}", what.slot, what.step);
  return what.is_whole() ? slot : fmt::format("record {} of {}", what.record, slot);
}

bool is_parked(const parked_slots_list& all, step_id step, slot_id slot) {
  return std::binary_search(all.begin(), all.end(), parked_slot{step, slot});
}

std::vector<slot_id> parked_whole(const parked_slots_list& all, step_id step) {
  std::vector<slot_id> slots;
  for (auto at = std::lower_bound(all.begin(), all.end(), parked_slot{step, {0}, 0});
       at != all.end() && at->step == step; ++at)
    if (at->is_whole()) slots.push_back(at->slot);
  return slots;
}

std::vector<std::uint32_t> parked_records(const parked_slots_list& all, step_id step, slot_id slot) {
  std::vector<std::uint32_t> places;
  const auto [begin, end] = entries_of(all, step, slot);
  for (auto one = begin; one != end && !one->is_whole(); ++one) places.push_back(one->record);
  return places;
}

std::uint64_t records_left(const parked_slots_list& all, step_id step, slot_id slot, std::uint64_t records) {
  if (is_parked(all, step, slot)) return 0;
  return records - std::min<std::uint64_t>(records, parked_records(all, step, slot).size());
}

parked_slots_list park(parked_slots_list& all, const parked_slot& what, std::uint64_t records,
                       std::uint64_t fewest) {
  parked_slots_list added;
  if (is_parked(all, what.step, what.slot)) return added;
  if (insert(all, what)) added.push_back(what);
  const auto left = records_left(all, what.step, what.slot, records);
  const parked_slot whole{what.step, what.slot};
  if (!what.is_whole() && left < std::max<std::uint64_t>(fewest, 1) && insert(all, whole))
    added.push_back(whole);
  return added;
}

} // namespace dlrun::protocol
