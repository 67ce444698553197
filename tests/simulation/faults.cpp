#include "tests/simulation/faults.hpp"

#include "tests/simulation/agent_process.hpp"
#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/root_process.hpp"
#include "tests/simulation/worker_process.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

using protocol::role_kind;

constexpr role_kind all_kinds[] = {role_kind::coordinator, role_kind::ps_shard, role_kind::worker};

} // namespace

fault_injector::fault_injector(world& where)
    : world_(where)
    , hosts_(
          where, [this] { return agent_->alive ? static_cast<root_process*>(agent_) : nullptr; },
          [this] {
            if (!agent_->alive) start();
          }) {
  world_.on_death = [this](process& which, std::string_view why) {
    if (agent_ != nullptr && agent_->alive && !which.taken_for_dead) agent_->lost(which, std::string(why));
  };
}

void fault_injector::start() {
  const auto number = ++agents_;
  if (world_.plan().hosts.are_several())
    agent_ = &world_.start<root_process>(number);
  else
    agent_ = &world_.start<agent_process>(number);
}

void fault_injector::plan() {
  for (const auto& one : world_.plan().faults)
    world_.after(one.at, nullptr, [this, kind = one.kind] { inject(kind); });
  hosts_.plan();
  world_.after(world_.plan().calm, nullptr, [this] { world_.start_calm(); });
}

process* fault_injector::some(role_kind kind) {
  auto all = world_.living(kind);
  std::erase_if(all, [](const process* one) { return one->taken_for_dead; });
  return all.empty() ? nullptr : world_.random().pick(all);
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
  case fault_kind::freeze_coordinator: return freeze_for_a_while(some(role_kind::coordinator));
  case fault_kind::restart_dispatcher: {
    auto* coordinator = static_cast<coordinator_process*>(some(role_kind::coordinator));
    if (coordinator != nullptr && !coordinator->frozen && coordinator->is_up())
      coordinator->restart_dispatcher();
    return;
  }
  case fault_kind::partition: return partition();
  case fault_kind::scale_workers: return scale_workers();
  case fault_kind::preempt_worker: return preempt(some(role_kind::worker));
  default: return inject_durable(kind);
  }
}

void fault_injector::inject_durable(fault_kind kind) {
  switch (kind) {
  case fault_kind::kill_coordinator: return kill({some(role_kind::coordinator)}, false);
  case fault_kind::zombie_coordinator: return kill({some(role_kind::coordinator)}, true);
  case fault_kind::depose_coordinator: return depose(some(role_kind::coordinator));
  case fault_kind::burst: return burst();
  case fault_kind::cut_power: return cut_power();
  case fault_kind::lose_journal: return lose_journal();
  case fault_kind::lose_disk: return lose_disk();
  case fault_kind::fill_disk: return fill_disk();
  case fault_kind::go_back: return go_back();
  case fault_kind::put_back_store: return copy_store();
  case fault_kind::put_back_journal: return copy_journal();
  case fault_kind::move_ps_shard: return move_ps_shard();
  default: return;
  }
}

// ---- processes

void fault_injector::kill(const std::vector<process*>& chosen, bool as_zombies) {
  auto victims = chosen;
  std::erase(victims, nullptr);
  for (auto* victim : victims) {
    if (victim->role().kind == role_kind::ps_shard) {
      world_.happened().ps_shard_lost = true;
      if (!world_.plan().is_durable()) ended_the_job_ = true;
    }
    if (victim->role().kind == role_kind::worker) world_.happened().worker_lost = true;
    if (as_zombies && world_.plan().hosts.are_several()) {
      freeze_for_a_while(victim); // an agent that is there kills it before it starts another
    } else if (as_zombies) {
      depose(victim);
      freeze_for_a_while(victim);
    } else {
      world_.kill(*victim, "killed by signal 9 (SIGKILL)");
    }
  }
}

void fault_injector::depose(process* victim) {
  // Of several hosts one is deposed when the root cannot reach it.
  if (victim == nullptr || world_.plan().hosts.are_several()) return;
  agent_->lost(*victim, "silent");
  victim->taken_for_dead = true;
  if (victim->role().kind == role_kind::ps_shard) world_.happened().memory_lost = true;
}

void fault_injector::freeze_for_a_while(process* which) {
  if (which == nullptr || which->frozen) return;
  if (which->role().kind == role_kind::worker) world_.happened().worker_lost = true;
  which->freeze();
  world_.after(world_.random().milliseconds(5, 200), nullptr, [which] { which->thaw(); });
}

void fault_injector::partition() {
  world_.happened().worker_lost = true;
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

void fault_injector::scale_workers() {
  agent_->scale(1 + static_cast<std::uint32_t>(world_.random().below(world_.plan().workers_max)));
}

void fault_injector::preempt(process* worker) {
  if (worker == nullptr) return;
  static_cast<worker_process*>(worker)->leave();
  world_.after(world_.plan().period * 20, nullptr, [this, worker] {
    if (!worker->alive) return;
    world_.happened().worker_lost = true;
    world_.kill(*worker, "killed by signal 9 (SIGKILL)");
  });
}

void fault_injector::move_ps_shard() {
  if (auto* which = some(role_kind::ps_shard)) static_cast<ps_shard_process*>(which)->move();
}

void fault_injector::burst() {
  for (int i = 0; i < 3; ++i) {
    const auto kind = world_.random().pick({fault_kind::kill_ps_shard, fault_kind::kill_worker,
                                            fault_kind::kill_coordinator, fault_kind::kill_ps_shard});
    world_.after(i * world_.random().milliseconds(0, 6), nullptr, [this, kind] { inject(kind); });
  }
}

// ---- what outlives them

/// Everything dies, the agent too; `dlrun resume` follows.
void fault_injector::cut_power() {
  auto& happened = world_.happened();
  happened.ps_shard_lost = happened.worker_lost = happened.memory_lost = true;
  if (world_.plan().durability == protocol::durability::every_step && !world_.plan().syncs_each_step)
    happened.lossy_power_cut = true; // `process` does not promise power cuts
  if (world_.plan().hosts.are_several()) {
    hosts_.cut_power();
    return start();
  }
  for (std::uint32_t shard = 0; shard < world_.job().ps_shards; ++shard)
    world_.disk_of({shard}).cut_power(world_.random());
  world_.kill(*agent_, "power cut");
  for (const auto kind : all_kinds)
    for (auto* one : world_.living(kind)) world_.kill(*one, "power cut");
  start();
}

/// The results of evaluations are in the metrics file too.
void fault_injector::lose_journal() {
  world_.happened().journal_lost = true;
  auto& journal = world_.journal();
  const auto evaluations = journal.course.evaluations;
  journal = {};
  journal.fences_are_lost = journal.course_is_lost = true;
  journal.course.evaluations = evaluations;
  for (auto* one : world_.living(role_kind::coordinator)) world_.kill(*one, "its journal is lost");
}

void fault_injector::copy_journal() {
  world_.after(world_.random().milliseconds(5, 200), nullptr, [this, copy = world_.journal()] {
    if (!world_.calm() && !world_.journal().ended && !copy.roles.empty()) put_back(copy);
  });
}

/// Of a journal in a folder nobody can say what one does that has it open.
void fault_injector::put_back(const coordinator_journal& copy) {
  world_.say(nullptr, "older data is put back into the journal");
  world_.happened().journal_lost = true;
  world_.journal() = copy;
  if (world_.plan().journal_is_remote && world_.random().chance(0.5)) return;
  for (auto* one : world_.living(role_kind::coordinator)) world_.kill(*one, "its journal was put back");
}

void fault_injector::lose_disk() {
  const ps_shard_id shard{static_cast<std::uint32_t>(world_.random().below(world_.job().ps_shards))};
  auto& happened = world_.happened();
  happened.disk_lost = happened.ps_shard_lost = true;
  auto& disk = world_.disk_of(shard);
  const auto opened_by = disk.opened_by;
  disk = simulated_store(shard, world_.plan().durability, world_.plan().syncs_each_step);
  disk.opened_by = opened_by; // so that zombies stay out
  for (auto* one : world_.living(protocol::ps_shard_role(shard))) world_.kill(*one, "its disk is lost");
}

/// And put back when another start has worked with it for a while.
void fault_injector::copy_store() {
  const ps_shard_id shard{static_cast<std::uint32_t>(world_.random().below(world_.job().ps_shards))};
  world_.happened().ps_shard_lost = true;
  for (auto* one : world_.living(protocol::ps_shard_role(shard))) world_.kill(*one, "its store is copied");
  world_.after(world_.random().milliseconds(20, 200), nullptr, [this, shard, copy = world_.disk_of(shard)] {
    if (!world_.calm() && !world_.journal().ended) put_back(shard, copy);
  });
}

void fault_injector::put_back(ps_shard_id shard, const simulated_store& copy) {
  auto& happened = world_.happened();
  happened.disk_lost = happened.ps_shard_lost = true;
  auto& disk = world_.disk_of(shard);
  const auto known = world_.journal().stores.find(shard);
  if (known != world_.journal().stores.end() && known->second.store.identity == copy.identity &&
      known->second.opener > copy.last_opener)
    happened.put_back[shard] = {copy.last_opener, disk.last_opener};
  const auto opened_by = disk.opened_by;
  disk = copy;
  disk.opened_by = opened_by; // so that zombies stay out
  disk.full = false;
  world_.say(nullptr, "an older copy of the store of ps_shard {} is put back", shard);
  for (auto* one : world_.living(protocol::ps_shard_role(shard))) world_.kill(*one, "its store is replaced");
}

void fault_injector::fill_disk() {
  auto& disk = world_.disk_of({static_cast<std::uint32_t>(world_.random().below(world_.job().ps_shards))});
  disk.full = true;
  world_.after(world_.random().milliseconds(10, 120), nullptr, [&disk] { disk.full = false; });
}

/// To any version at once, or to one just below a floor that is on its way.
void fault_injector::go_back() {
  if (world_.random().chance(0.4)) return go_back_to({world_.random().below(world_.job().steps)});
  world_.happened().on_floor = [this](version_id floor) {
    world_.happened().on_floor = nullptr;
    const auto below = 1 + world_.random().below(3);
    world_.after(world_.random().milliseconds(0, 3), nullptr,
                 [this, floor, below] { go_back_to({floor.value > below ? floor.value - below : 0}); });
  };
}

void fault_injector::go_back_to(version_id version) {
  ask_to_go_back({version, world_.journal().course.history.back().revision + 1, {}});
}

void fault_injector::ask_to_go_back(const data_dispatcher::wanted_change& wanted) {
  if (world_.calm() || world_.journal().course_is_lost ||
      world_.journal().course.history.back().revision >= wanted.revision)
    return;
  world_.happened().went_back_on_purpose = true;
  auto* coordinator = static_cast<coordinator_process*>(some(role_kind::coordinator));
  if (coordinator != nullptr && !coordinator->frozen && coordinator->is_up())
    coordinator->dispatcher().go_back(wanted);
  world_.after(world_.plan().period * 2, nullptr, [this, wanted] { ask_to_go_back(wanted); });
}

} // namespace dlrun::simulation
