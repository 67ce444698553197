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

void what_happened::note_opened(const protocol::join& join, bool is_current, bool is_short,
                                bool may_be_damaged) {
  const ps_shard_id shard{join.role.index};
  const bool may_be_short = disk_lost || lossy_power_cut || may_be_damaged;
  if (is_short && !may_be_short) broken("R24", "the store of ps_shard {} is called short, and is not", shard);
  const auto copy = put_back.find(shard);
  if (copy == put_back.end() || join.self.incarnation <= copy->second.replaced ||
      join.opened.opener != copy->second.opener)
    return;
  if (is_current && !is_short && !journal_lost)
    broken("R24", "ps_shard {} comes back with an older copy of its store, and nobody says so", shard);
  put_back.erase(copy);
}

void what_happened::check_begun(const ps_shard::perform_rewind& order, timeline_id newest,
                                const std::string& by) const {
  if (!journal_lost && order.timeline > newest)
    broken("R15", "{} goes to timeline {}, which is not in the journal", by, order.timeline);
}

} // namespace dlrun::simulation
