#include "actors/worker/slot_trials.hpp"

namespace dlrun::worker {

using protocol::is_planted;
using protocol::planted_bug;

std::vector<slot_trial> trials_of(const protocol::suspect_slot& suspect,
                                  const std::vector<std::uint32_t>& records, planted_bug bug) {
  std::vector<slot_trial> all;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto next = records[(i + 1) % records.size()];
    all.push_back({{records[i]}, is_planted(bug, planted_bug::blame_neighbour) ? next : records[i]});
  }
  for (std::size_t size = 2; suspect.together && size < records.size(); ++size)
    all.push_back(
        {{records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size)}, records[size - 1]});
  return all;
}

protocol::slot_progress progress_after(const protocol::suspect_slot& suspect,
                                       const std::vector<std::uint32_t>& records) {
  const bool last_is_known = suspect.together && !records.empty();
  return {{suspect.step, suspect.slot, last_is_known ? records.back() : protocol::all_records}, true};
}

} // namespace dlrun::worker
