#include "tests/simulation/world.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

/// Of several hosts: the control connection of agent and coordinator. What is said over it is said
/// once (all else is repeated), in order; when it breaks both ends see that.
bool is_connection(const scenario& plan, const process& from, protocol::role_name to) {
  return plan.hosts.are_several() && ((from.role() == agent_role && to == coordinator_role) ||
                                      (from.role() == coordinator_role && to == agent_role));
}

} // namespace

double milliseconds(protocol::time_point at) {
  return std::chrono::duration<double, std::milli>(at - beginning).count();
}

world::world(const scenario& plan, protocol::planted_bug bug, std::ostream* trace)
    : plan_(plan)
    , bug_(bug)
    , truth_(plan.job)
    , random_(mix(plan.seed) + 1)
    , trace_(trace)
    , now_(beginning)
    , hosts_(plan.hosts)
    , stores_(plan) {}

void world::run() {
  while (!end_.ended) {
    if (queue_.empty()) broken("liveness", "nothing is left to do");
    auto next = queue_.pop();
    if (next.owner != nullptr && !next.owner->alive) continue;
    now_ = next.at;
    if (now_ - beginning > plan_.limit)
      broken("liveness", "not done {} ms after the last fault", (plan_.limit - plan_.calm).count() / 1000);
    if (next.owner != nullptr && next.owner->frozen) {
      next.owner->deferred.push_back(std::move(next));
      continue;
    }
    ++events;
    next.what();
  }
}

void world::after(protocol::duration delay, process* owner, std::function<void()> what) {
  queue_.add(now_ + delay, owner, std::move(what));
}

void world::admit(std::unique_ptr<process> owned) {
  auto& started = *owned;
  living_[started.role()].push_back(&started);
  processes_.push_back(std::move(owned));
  started.given_up = dead_.contains({started.role(), started.self().incarnation});
  if (started.given_up) started.taken_for_dead = true;
  say(&started, "starts");
  started.start();
}

void world::kill(process& which, std::string_view why) {
  if (!which.alive) return;
  say(&which, "dies: {}", why);
  which.alive = false;
  which.deferred.clear();
  std::erase(living_[which.role()], &which);
  which.died();
  if (which.on_end)
    which.on_end(which, why);
  else if (on_death)
    on_death(which, why);
}

void world::take_for_dead(const protocol::role_name& role, incarnation start) {
  dead_.insert({role, start});
  for (auto* one : living(role))
    if (one->self().incarnation == start) one->taken_for_dead = one->given_up = true;
}

protocol::duration world::delay() {
  auto long_ms = random_.between(0.3, 1.5);
  if (!calm_ && random_.chance(plan_.slowness)) long_ms *= 20;
  return protocol::duration(static_cast<std::int64_t>(1000 * long_ms));
}

void world::send_connected(process& from, protocol::role_name to, message what) {
  auto& last = last_arrival_[{&from, to.kind}];
  last = std::max(now_ + delay(), last);
  const auto shared = std::make_shared<message>(std::move(what));
  after(last - now_, nullptr, [this, &from, to, shared, sent = now_] {
    for (auto* receiver : living(to)) {
      if (!from.addresses(*receiver)) continue;
      if (from.reaches(*receiver, sent)) continue;
      receiver->connection_broken(from);
      from.connection_broken(*receiver);
    }
    deliver(from, to, shared, sent);
  });
}

void world::send(process& from, protocol::role_name to, message what) {
  if (is_connection(plan_, from, to)) return send_connected(from, to, std::move(what));
  if (!calm_ && random_.chance(plan_.loss)) return;
  const int copies = !calm_ && random_.chance(plan_.duplication) ? 2 : 1;
  const auto shared = std::make_shared<message>(std::move(what));
  for (int i = 0; i < copies; ++i)
    after(delay(), nullptr, [this, &from, to, shared, sent = now_] { deliver(from, to, shared, sent); });
}

/// A role's name reaches its zombies too.
void world::deliver(process& from, protocol::role_name to, const std::shared_ptr<message>& what,
                    protocol::time_point sent) {
  if (to.kind == protocol::role_kind::data_dispatcher)
    to.kind = protocol::role_kind::coordinator; // one process
  for (auto* receiver : living(to)) {
    if (!from.reaches(*receiver, sent) || !from.addresses(*receiver)) continue;
    if (receiver->frozen)
      receiver->deferred.push_back({now_, 0, receiver, [receiver, what] { receiver->receive(*what); }});
    else if (receiver->alive)
      receiver->receive(*what);
  }
}

void world::start_calm() {
  say(nullptr, "faults stop");
  calm_ = true;
  for (const auto& one : processes_) one->group = 0;
  hosts_.mend_all(now_);
  stores_.empty_disks();
}

std::vector<process*> world::living(protocol::role_name role) const {
  const auto at = living_.find(role);
  return at == living_.end() ? std::vector<process*>{} : at->second;
}

std::vector<process*> world::living(protocol::role_kind kind) const {
  std::vector<process*> all;
  for (const auto& [role, starts] : living_)
    if (role.kind == kind) all.insert(all.end(), starts.begin(), starts.end());
  return all;
}

process* world::newest(protocol::role_name role) const {
  process* found = nullptr;
  for (auto* one : living(role))
    if (!one->taken_for_dead && (found == nullptr || found->self().incarnation < one->self().incarnation))
      found = one;
  return found;
}

} // namespace dlrun::simulation
