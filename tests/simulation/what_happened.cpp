#include "tests/simulation/what_happened.hpp"

#include "tests/simulation/violation.hpp"

#include <algorithm>

namespace dlrun::simulation {

void what_happened::note_floor(const protocol::floor& order, timeline_id newest) {
  if (order.timeline == newest) floor = std::max(floor, order.version.value);
  if (on_floor) on_floor(order.version);
}

void what_happened::note_rewind(const protocol::timeline_started& start, bool may_be_damaged) {
  ++rewinds;
  steps_redone += start.steps_redone;
  const bool is_lost = start.reason.find("lacks step") != std::string::npos;
  if (is_lost) ++rewinds_for_lost_gradients;
  const bool may_be_below =
      start.reason == "the operator goes back" || disk_lost || journal_lost || may_be_damaged;
  if (start.branch.value < floor && !may_be_below)
    broken("R13", "training goes back to version {}, below the floor {}", start.branch, floor);
  floor = std::min(floor, start.branch.value);
}

void what_happened::check_begun(const ps_shard::perform_rewind& order, timeline_id newest,
                                const std::string& by) const {
  if (!journal_lost && order.timeline > newest)
    broken("R15", "{} goes to timeline {}, which is not in the journal", by, order.timeline);
}

} // namespace dlrun::simulation
