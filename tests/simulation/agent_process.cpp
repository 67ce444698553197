#include "tests/simulation/agent_process.hpp"

#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/worker_process.hpp"
#include "tests/simulation/world.hpp"

#include <algorithm>

namespace dlrun::simulation {
agent_process::agent_process(world& where, std::uint64_t number)
    : job_agent(where, agent_role, {{number}, 0})
    , number_(number)
    , orders_(number, where.plan().workers) {
  std::vector<supervision::child_spec> specs;
  const auto add = [&](protocol::role_name role) {
    const auto id = protocol::to_string(role);
    children_[id].role = role;
    specs.push_back({.id = id});
  };
  add(coordinator_role);
  coordinator().last_used = where.journal().owner;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard) add(protocol::ps_shard_role({shard}));
  for (std::uint32_t worker = 0; worker < where.plan().workers; ++worker)
    add(protocol::worker_role({worker}));
  supervision::supervisor_options options;
  options.intensity = 1000;
  auto made = supervision::supervisor::create(options, specs);
  if (!made) broken("supervisor", "{}", made.error().message);
  supervisor_.emplace(std::move(*made));
}

agent_process::child& agent_process::coordinator() {
  return children_.at(protocol::to_string(coordinator_role));
}

void agent_process::start() {
  world_.stores().retained().lose(host());
  perform(supervisor_->start(world_.now()));
  every(world_.plan().period, [this] { tell_coordinator(); });
}

void agent_process::perform(const supervision::actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& order) { perform_one(order); }, action);
}

void agent_process::perform_one(const supervision::start_child& order) {
  auto& which = children_.at(order.id);
  which.wanted = order.number;
  launch(which);
}

/// R33: a worker is asked to leave, and killed when it has not in time.
void agent_process::perform_one(const supervision::stop_child& order) {
  auto& which = children_.at(order.id);
  if (order.how == supervision::stop_child::kind::terminate)
    broken("supervisor", "{} is ended in a job that nobody stops", order.id);
  if (which.wanted) { // it waits for a fence
    which.wanted.reset();
    return perform(supervisor_->child_exited(order.id, order.number, {"not started"}, world_.now()));
  }
  if (which.running == nullptr || !which.running->alive) return; // its start or its end is on the way
  if (order.how == supervision::stop_child::kind::leave)
    return static_cast<worker_process*>(which.running)->leave();
  world_.happened().worker_lost = true;
  world_.kill(*which.running, "killed by signal 9 (SIGKILL)");
}

template <class Action>
void agent_process::perform_one(const Action& action) {
  broken("supervisor", "{} in a job that nobody stops", supervision::to_string(action));
}

/// R32.
void agent_process::follow(const protocol::workers_wanted& word) {
  const auto before = orders_.workers();
  const auto wanted = orders_.hear(word);
  if (!wanted) return;
  world_.say(this, "runs {} workers, {} before", *wanted, before);
  for (auto worker = before; worker < *wanted; ++worker) {
    const auto role = protocol::worker_role({worker});
    const auto id = protocol::to_string(role);
    children_[id].role = role;
    children_[id].dismissed = false;
    perform(supervisor_->add({.id = id}, world_.now()));
  }
  for (auto worker = *wanted; worker < before; ++worker) {
    const auto id = protocol::to_string(protocol::worker_role({worker}));
    children_.at(id).dismissed = true;
    const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(world_.plan().period * 20);
    perform(supervisor_->dismiss(id, grace, world_.now()));
  }
}

/// R4: nothing starts without a fence that the coordinator issued. Its own the agent can issue when
/// it has none left: to open the journal is to write it down.
void agent_process::launch(child& which) {
  if (which.wanted && which.fences.empty() && which.role == coordinator_role)
    which.fences.push_back({{which.last_used.value + 1}, world_.random().next()});
  if (!which.wanted || which.fences.empty()) return;
  const auto number = *which.wanted;
  which.wanted.reset();
  const auto fence = which.fences.front();
  which.fences.erase(which.fences.begin());
  which.last_used = fence.incarnation;
  const auto time = world_.random().milliseconds(0.5, 1.5) * world_.plan().start_ms;
  after(std::chrono::duration_cast<protocol::duration>(time),
        [this, &which, number, fence] { launched(which, number, fence); });
}

void agent_process::launched(child& which, supervision::generation number, protocol::fence fence) {
  which.number = number;
  auto& started = create(which.role, fence);
  which.running = &started;
  if (which.role == coordinator_role) orders_.forget_coordinator();
  if (!started.alive) lost(started, "cannot start");
  send(coordinator_role, protocol::role_started{which.role, fence, 1});
  perform(supervisor_->child_started(protocol::to_string(which.role), number, world_.now()));
  if (which.dismissed && started.alive) static_cast<worker_process&>(started).leave();
}

process& agent_process::create(protocol::role_name role, protocol::fence fence) {
  switch (role.kind) {
  case protocol::role_kind::worker: return world_.start<worker_process>(worker_id{role.index}, fence);
  case protocol::role_kind::ps_shard: return world_.start<ps_shard_process>(ps_shard_id{role.index}, fence);
  default: return world_.start<coordinator_process>(fence, number_);
  }
}

void agent_process::lost(process& which, std::string cause) {
  const auto at = children_.find(protocol::to_string(which.role()));
  if (at == children_.end() || at->second.running != &which) return;
  auto& child = at->second;
  after(world_.random().milliseconds(0.5, 8),
        [this, &child, &which, cause = std::move(cause)] { notice(child, which, cause); });
}

void agent_process::notice(child& which, process& lost, const std::string& cause) {
  if (which.running != &lost) return;
  which.running = nullptr;
  which.exit = protocol::role_exited{which.role, lost.self(), cause, 1000, true};
  if (const auto* worker = dynamic_cast<const worker_process*>(&lost); worker != nullptr) {
    const bool counts = worker->crashed || world_.is_planted(protocol::planted_bug::count_kills);
    which.exit->has_progress = counts && worker->at;
    which.exit->progress = worker->at.value_or(protocol::slot_progress{});
    which.exit->left = which.dismissed || worker->left;
  }
  send(coordinator_role, *which.exit);
  perform(supervisor_->child_exited(protocol::to_string(which.role), which.number, {cause}, world_.now()));
}

bool agent_process::lacks_fences() const {
  return std::any_of(children_.begin(), children_.end(), [&](const auto& entry) {
    const bool is_granted = world_.plan().is_durable() || entry.second.role != coordinator_role;
    return is_granted && !entry.second.dismissed && entry.second.fences.empty();
  });
}

/// From state, again and again: any of it may have been lost on the way.
void agent_process::tell_coordinator() {
  perform(supervisor_->tick(world_.now()));
  if (const auto due = orders_.due()) send(coordinator_role, *due);
  if (lacks_fences() || ++rounds_ % 4 == 0) send(coordinator_role, agent_hello{number_});
  for (const auto& [id, which] : children_) {
    if (const auto* up = coordinator().running; up != nullptr && which.role != coordinator_role)
      send(which.role, coordinator_moved{{up->self().incarnation, up->endpoint().process}});
    if (which.running != nullptr)
      send(coordinator_role, protocol::role_started{which.role, which.running->self(), 1});
    else if (which.exit)
      send(coordinator_role, *which.exit);
  }
}

void agent_process::receive(const message& what) {
  if (const auto* ended = std::get_if<protocol::job_ended>(&what)) return void(world_.end().ended = *ended);
  if (const auto* word = std::get_if<protocol::workers_wanted>(&what)) return follow(*word);
  const auto* granted = std::get_if<protocol::grant>(&what);
  if (granted == nullptr || granted->agent != number_) return;
  const auto known = children_.find(protocol::to_string(granted->role));
  if (known == children_.end()) return; // a worker that it has not heard of yet
  auto& which = known->second;
  for (const auto& fence : granted->fences) {
    if (fence.incarnation <= which.last_used) continue;
    if (std::find(which.fences.begin(), which.fences.end(), fence) == which.fences.end())
      which.fences.push_back(fence);
  }
  std::sort(which.fences.begin(), which.fences.end(),
            [](const auto& a, const auto& b) { return a.incarnation < b.incarnation; });
  launch(which);
}

} // namespace dlrun::simulation
