#include "actors/data_dispatcher/lost_gradients.hpp"

#include <algorithm>
#include <iterator>

namespace dlrun::data_dispatcher {
namespace {

/// Workers keep B + 2 steps at most: of a shard further behind than this the first steps are lost
/// for certain.
constexpr std::uint64_t steps_looked_at_max = 64;

bool serves(const protocol::shard_status& shard, step_id step) {
  const auto version = version_before(step);
  return shard.applied == version || (shard.applied == version_after(step) && shard.durable.serves_previous);
}

std::set<stuck_steps::lacking> both(const std::set<stuck_steps::lacking>& left,
                                    const std::set<stuck_steps::lacking>& right) {
  std::set<stuck_steps::lacking> shared;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                        std::inserter(shared, shared.begin()));
  return shared;
}

} // namespace

stuck_steps find_stuck(const shard_statuses& shards, bool couples) {
  stuck_steps found;
  for (const auto& [lagging, behind] : shards) {
    for (const auto& [other, ahead] : shards) {
      const auto end = std::min(ahead.applied.value, behind.applied.value + steps_looked_at_max);
      for (auto step = step_from(behind.applied); step.value < end; ++step.value) {
        if (!serves(ahead, step)) found.gradients.emplace(lagging, step);
        if (couples && ahead.durable.norms_from > step) found.norms.emplace(lagging, step);
      }
    }
  }
  return found;
}

gradient_search::gradient_search(std::uint64_t id, stuck_steps before,
                                 std::map<worker_id, dlrun::incarnation> workers, std::uint32_t ps_shards)
    : id_(id)
    , before_(std::move(before))
    , workers_(std::move(workers)) {
  for (std::uint32_t shard = 0; shard < ps_shards; ++shard) shards_.insert({shard});
}

std::vector<protocol::role_name> gradient_search::waits_for() const {
  std::vector<protocol::role_name> all;
  for (const auto& [worker, start] : workers_) all.push_back(protocol::worker_role(worker));
  if (!all.empty()) return all;
  for (const auto shard : shards_) all.push_back(protocol::ps_shard_role(shard));
  return all;
}

void gradient_search::keep_workers(const std::map<worker_id, dlrun::incarnation>& heard) {
  std::erase_if(workers_, [&](const auto& waiting) {
    const auto at = heard.find(waiting.first);
    return at == heard.end() || at->second != waiting.second;
  });
}

void gradient_search::on_kept(const protocol::kept& answer, timeline_id timeline) {
  const auto at = workers_.find(answer.worker);
  if (answer.probe != id_ || at == workers_.end() || at->second != answer.self.incarnation) return;
  if (answer.timeline == timeline) kept_.insert(kept_.end(), answer.slots.begin(), answer.slots.end());
  workers_.erase(at);
}

void gradient_search::on_shard(const protocol::shard_status& answer) {
  if (workers_.empty() && answer.probe == id_) shards_.erase(answer.shard);
}

std::optional<slot_id> gradient_search::uncovered_slot(const protocol::shard_status& shard, step_id step,
                                                       const std::vector<protocol::parked_slot>& parked,
                                                       std::uint32_t slots) const {
  std::vector<bool> covered(slots);
  const auto cover = [&](const protocol::step_slots& run) {
    if (run.step != step) return;
    for (auto slot = run.slots.begin; slot < run.slots.end && slot.value < slots; ++slot.value)
      covered[slot.value] = true;
  };
  std::for_each(kept_.begin(), kept_.end(), cover);
  std::for_each(shard.durable.held.begin(), shard.durable.held.end(), cover);
  for (const auto& one : parked)
    if (one.is_whole()) cover({one.step, {one.slot, {one.slot.value + 1}}});
  const auto first = std::find(covered.begin(), covered.end(), false);
  if (first == covered.end()) return std::nullopt;
  return slot_id{static_cast<std::uint32_t>(first - covered.begin())};
}

std::optional<std::string>
gradient_search::verdict(const shard_statuses& shards, bool couples,
                         const std::vector<protocol::parked_slot>& parked,
                         const std::function<std::uint32_t(step_id)>& slots_of) const {
  const auto after = find_stuck(shards, couples);
  for (const auto& [shard, step] : both(before_.norms, after.norms))
    return fmt::format("ps_shard {} lacks step {}, and a norm of it is lost", shard, step);
  for (const auto& [shard, step] : both(before_.gradients, after.gradients))
    if (const auto slot = uncovered_slot(shards.at(shard), step, parked, slots_of(step)))
      return fmt::format("ps_shard {} lacks step {}, and nobody has the gradient of slot {} any more", shard,
                         step, *slot);
  return std::nullopt;
}

} // namespace dlrun::data_dispatcher
