/// Records that are left out of the training because they end whoever computes them (rule R18).
#pragma once

#include <algorithm>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// As the place of a record: all of its slot.
inline constexpr std::uint32_t all_records = UINT32_MAX;

/// A slot that is left out of the training, so that its gradient is zero; or one record of it, so
/// that the gradient is the sum over the others.
struct parked_slot {
  step_id step;
  slot_id slot;
  std::uint32_t record = all_records; ///< place in the slot as the sampler fills it, from 0

  bool is_whole() const { return record == all_records; }
  auto operator<=>(const parked_slot&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, parked_slot& x) {
    return f(x.step, x.slot, x.record);
  }
};
/// Sorted, without repetition.
using parked_slots_list = std::vector<parked_slot>;

/// As the user writes it, and as `--skip` takes it: "STEP:SLOT" or "STEP:SLOT:RECORD".
std::string to_string(const parked_slot& what);

/// For people: "slot 3 of step 128", "record 17 of slot 3 of step 128".
std::string describe(const parked_slot& what);

/// Whether all of the slot is left out. `all` is sorted, here and below.
bool is_parked(const parked_slots_list& all, step_id step, slot_id slot);
/// The slots of the step that are left out as a whole, ascending.
std::vector<slot_id> parked_whole(const parked_slots_list& all, step_id step);
/// The places of the records of the slot that are left out one by one, ascending.
std::vector<std::uint32_t> parked_records(const parked_slots_list& all, step_id step, slot_id slot);
/// How many of the `records` of the slot are trained.
std::uint64_t records_left(const parked_slots_list& all, step_id step, slot_id slot, std::uint64_t records);
/// Adds `what`; and the whole slot, where fewer than `fewest` (at least 1) of its `records` are
/// left: so few cannot be trained. @returns what is new in `all`.
parked_slots_list park(parked_slots_list& all, const parked_slot& what, std::uint64_t records,
                       std::uint64_t fewest);

/// A slot in which several starts of workers have died. Whoever computes it tries its records
/// first, so that his death tells which of them it was.
struct suspect_slot {
  step_id step;
  slot_id slot;
  bool together = false; ///< no record of it kills alone: some do so together

  auto operator<=>(const suspect_slot&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, suspect_slot& x) {
    return f(x.step, x.slot, x.together);
  }
};
/// Records that one coordinator has left out because workers died at them. More: the fault is
/// hardly the data's, and deaths use up the restart budget as others do.
inline constexpr std::size_t parked_by_death_max = 64;

/// What a coordinator names at a time: the newest.
inline constexpr std::size_t suspect_slots_max = 64;

/// Where a worker was in its work when it ended.
struct slot_progress {
  parked_slot at;        ///< with a record: it was being tried, and without it the slot can be computed
  bool examined = false; ///< the records of the slot had been tried before, alone

  auto operator<=>(const slot_progress&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, slot_progress& x) {
    return f(x.at, x.examined);
  }
};

} // namespace dlrun::protocol
