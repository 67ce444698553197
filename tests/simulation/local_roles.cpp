#include "tests/simulation/local_roles.hpp"

#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/worker_process.hpp"
#include "tests/simulation/world.hpp"

#include <utility>

namespace dlrun::simulation {
namespace {

agent::role_end end_of(const process& lost, const std::string& cause, const world& where) {
  agent::role_end end{.cause = cause};
  const auto* worker = dynamic_cast<const worker_process*>(&lost);
  if (worker == nullptr) return end;
  if (worker->crashed || where.is_planted(protocol::planted_bug::count_kills)) end.slot = worker->at;
  end.left = worker->left;
  return end;
}

} // namespace

local_roles::local_roles(world& where, process& owner, std::uint64_t job_agent, owner_side tell)
    : world_(where)
    , owner_(owner)
    , job_agent_(job_agent)
    , tell_(std::move(tell)) {
  world_.stores().retained().lose(owner.host());
}

void local_roles::start(const protocol::role_name& role, const protocol::fence& self) {
  const start_key key{role, self.incarnation};
  starts_[key].self = self;
  const auto time = world_.random().milliseconds(0.5, 1.5) * world_.plan().start_ms;
  world_.after(std::chrono::duration_cast<protocol::duration>(time), &owner_, [this, key] { launch(key); });
}

void local_roles::launch(const start_key& key) {
  const auto at = starts_.find(key);
  if (at == starts_.end()) return; // stopped meanwhile
  auto& started = create(key.first, at->second.self);
  at->second.running = &started;
  started.on_end = [this](process& which, std::string_view why) { lost(which, std::string(why)); };
  tell_.started(key.first, at->second.self);
  if (!started.alive) return lost(started, "cannot start");
  if (at->second.is_to_leave) static_cast<worker_process&>(started).leave();
}

process& local_roles::create(const protocol::role_name& role, const protocol::fence& self) {
  const auto host = owner_.host();
  switch (role.kind) {
  case protocol::role_kind::worker: return world_.start<worker_process>(worker_id{role.index}, self, host);
  case protocol::role_kind::ps_shard:
    return world_.start<ps_shard_process>(ps_shard_id{role.index}, self, host);
  default: return world_.start<coordinator_process>(self, job_agent_, host);
  }
}

void local_roles::stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how) {
  const start_key key{role, self.incarnation};
  const auto at = starts_.find(key);
  if (at == starts_.end()) return;
  auto* running = at->second.running;
  if (how == protocol::stop_how::leave) {
    at->second.is_to_leave = true;
    if (running != nullptr && running->alive) static_cast<worker_process*>(running)->leave();
  } else if (running == nullptr) {
    starts_.erase(at);
    tell_.exited(role, self, {.cause = "was killed before it began"});
  } else {
    if (role.kind == protocol::role_kind::worker) world_.happened().worker_lost = true;
    world_.kill(*running, "killed by signal 9 (SIGKILL)");
  }
}

void local_roles::lost(process& which, const std::string& cause) {
  if (!owner_.alive) return;
  const start_key key{which.role(), which.self().incarnation};
  world_.after(world_.random().milliseconds(0.5, 8), &owner_,
               [this, key, how = end_of(which, cause, world_)] { notice(key, how); });
}

void local_roles::notice(const start_key& key, const agent::role_end& how) {
  const auto at = starts_.find(key);
  if (at == starts_.end()) return;
  const auto self = at->second.self;
  starts_.erase(at);
  tell_.exited(key.first, self, how);
}

void local_roles::kill_all(const std::string& why) {
  for (const auto& [key, one] : std::exchange(starts_, {}))
    if (one.running != nullptr) world_.kill(*one.running, why);
  world_.stores().retained().lose(owner_.host());
}

} // namespace dlrun::simulation
