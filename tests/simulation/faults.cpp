#include "tests/simulation/faults.hpp"

#include "tests/simulation/agent_process.hpp"
#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/worker_process.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

using protocol::role_kind;

bool contains(const std::vector<process*>& all, const process* one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

} // namespace

fault_injector::fault_injector(world& where, agent_process& agent, coordinator_process& coordinator)
    : world_(where)
    , agent_(agent)
    , coordinator_(coordinator) {}

void fault_injector::plan() {
  for (const auto& one : world_.plan().faults)
    world_.after(one.at, nullptr, [this, kind = one.kind] { inject(kind); });
  world_.after(world_.plan().calm, nullptr, [this] { world_.start_calm(); });
}

process* fault_injector::some(role_kind kind) {
  auto all = world_.living(kind);
  std::erase_if(all, [](const process* one) { return one->taken_for_dead; });
  return all.empty() ? nullptr : world_.random().pick(all);
}

bool fault_injector::has_zombie(role_kind kind) const {
  const auto all = world_.living(kind);
  return std::any_of(all.begin(), all.end(), [](const process* one) { return one->taken_for_dead; });
}

void fault_injector::inject(fault_kind kind) {
  world_.say(nullptr, "FAULT: {}", to_string(kind));
  switch (kind) {
  case fault_kind::kill_worker: return kill({some(role_kind::worker)}, false);
  case fault_kind::kill_all_workers: return kill(world_.living(role_kind::worker), false);
  case fault_kind::kill_ps_shard: return kill({some(role_kind::ps_shard)}, false);
  case fault_kind::kill_host: return kill({some(role_kind::ps_shard), some(role_kind::worker)}, false);
  case fault_kind::zombie_worker: return kill({some(role_kind::worker)}, true);
  case fault_kind::zombie_ps_shard: return kill({some(role_kind::ps_shard)}, true);
  case fault_kind::freeze_worker: return freeze_for_a_while(some(role_kind::worker));
  case fault_kind::freeze_ps_shard: return freeze_for_a_while(some(role_kind::ps_shard));
  case fault_kind::freeze_coordinator: return freeze_for_a_while(&coordinator_);
  case fault_kind::restart_dispatcher:
    if (!coordinator_.frozen) coordinator_.restart_dispatcher();
    return;
  case fault_kind::partition: return partition();
  }
}

void fault_injector::kill(const std::vector<process*>& chosen, bool as_zombies) {
  auto victims = chosen;
  std::erase(victims, nullptr);
  if (victims.empty() || !is_bearable(victims, as_zombies)) return world_.say(nullptr, "not now");
  for (auto* victim : victims) {
    if (victim->role().kind == role_kind::ps_shard && !world_.plan().logs) ended_the_job_ = true;
    if (as_zombies) {
      victim->taken_for_dead = true;
      freeze_for_a_while(victim);
    } else {
      world_.kill(*victim, "SIGKILL");
    }
    if (!as_zombies || !contains(victims, nullptr))
      agent_.lost(*victim, as_zombies ? "silent" : "killed by signal 9 (SIGKILL)");
  }
}

void fault_injector::freeze_for_a_while(process* which) {
  if (which == nullptr || which->frozen) return;
  world_.freeze(*which);
  world_.after(world_.random().milliseconds(5, 200), nullptr, [this, which] { world_.thaw(*which); });
}

void fault_injector::partition() {
  const auto group = 1 + static_cast<int>(world_.random().below(3));
  std::vector<process*> cut;
  for (const auto kind : {role_kind::worker, role_kind::ps_shard, role_kind::coordinator})
    for (auto* one : world_.living(kind))
      if (world_.random().chance(0.3)) cut.push_back(one);
  for (auto* one : cut) one->group = group;
  world_.after(world_.random().milliseconds(10, 150), nullptr, [cut] {
    for (auto* one : cut) one->group = 0;
  });
}

/// Whether the job can go on from what is left without a rewind, which is not built yet (R14 to R16): each
/// step that a PS shard would lack after this either can be computed again, since no shard has ever gone past
/// it, or is kept in whole by workers that stay. Workers forget only what every shard has committed.
///
/// A zombie PS shard may still publish versions, from which workers that have not heard better compute on:
/// while there is one, no worker may be lost, and none may be a zombie.
bool fault_injector::is_bearable(const std::vector<process*>& victims, bool as_zombies) const {
  const auto& job = world_.job();
  if (!world_.plan().logs || job.ps_shards == 1) return true;
  const auto is_worker = [](const process* one) { return one->role().kind == role_kind::worker; };
  if (std::any_of(victims.begin(), victims.end(), is_worker) ? has_zombie(role_kind::ps_shard)
                                                             : as_zombies && has_zombie(role_kind::worker))
    return false;
  std::map<step_id, std::vector<bool>> kept;
  for (auto* one : world_.living(role_kind::worker)) {
    if (one->taken_for_dead || contains(victims, one)) continue;
    for (const auto& [key, buffer] : static_cast<worker_process*>(one)->kept()) {
      auto& slots = kept[key.first];
      slots.resize(job.slots_of(key.first));
      for (auto slot = key.second.begin; slot < key.second.end; ++slot.value) slots[slot.value] = true;
    }
  }
  for (std::uint32_t shard = 0; shard < job.ps_shards; ++shard) {
    auto lacks_from = world_.disk_of({shard}).roots.size();
    auto* running = world_.newest(protocol::ps_shard_role({shard}));
    if (running != nullptr && !contains(victims, running))
      lacks_from = static_cast<ps_shard_process*>(running)->core().state().applied.value;
    for (step_id step{lacks_from}; step.value < world_.highest_published(); ++step.value) {
      const auto& slots = kept[step];
      if (slots.empty() || std::find(slots.begin(), slots.end(), false) != slots.end()) return false;
    }
  }
  return true;
}

} // namespace dlrun::simulation
