#include "tests/simulation/world.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

/// A clock that has run for a while, as that of a real machine.
constexpr protocol::time_point beginning{std::chrono::hours(1)};

} // namespace

world::world(const scenario& plan, protocol::planted_bug bug, std::ostream* trace)
    : plan_(plan)
    , bug_(bug)
    , truth_(plan.job)
    , random_(mix(plan.seed) + 1)
    , trace_(trace)
    , now_(beginning) {
  for (std::uint32_t shard = 0; shard < plan.job.ps_shards; ++shard)
    disks_.emplace_back(ps_shard_id{shard}, plan.durability, plan.syncs_each_step);
}

double world::milliseconds_now() const {
  return std::chrono::duration<double, std::milli>(now_ - beginning).count();
}

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
  if (on_death) on_death(which, why);
}

void world::freeze(process& which) {
  if (!which.alive || which.frozen) return;
  say(&which, "is frozen");
  which.frozen = true;
}

void world::thaw(process& which) {
  if (!which.alive || !which.frozen) return;
  say(&which, "thaws");
  which.frozen = false;
  for (auto& one : which.deferred) queue_.add(now_, &which, std::move(one.what));
  which.deferred.clear();
}

protocol::duration world::delay() {
  auto long_ms = random_.between(0.3, 1.5);
  if (!calm_ && random_.chance(plan_.slowness)) long_ms *= 20;
  return protocol::duration(static_cast<std::int64_t>(1000 * long_ms));
}

protocol::duration world::journal_delay() {
  return protocol::duration(static_cast<std::int64_t>(1000 * random_.between(0.2, 1) * plan_.journal_ms));
}

void world::send(process& from, protocol::role_name to, message what) {
  if (!calm_ && random_.chance(plan_.loss)) return;
  const int copies = !calm_ && random_.chance(plan_.duplication) ? 2 : 1;
  const auto shared = std::make_shared<message>(std::move(what));
  for (int i = 0; i < copies; ++i)
    after(delay(), nullptr, [this, &from, to, shared] { deliver(from, to, shared); });
}

/// A role's name reaches its zombies too.
void world::deliver(process& from, protocol::role_name to, const std::shared_ptr<message>& what) {
  if (to.kind == protocol::role_kind::data_dispatcher)
    to.kind = protocol::role_kind::coordinator; // one process
  for (auto* receiver : living(to)) {
    if (!from.reaches(*receiver)) continue;
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
  for (auto& disk : disks_) disk.full = false;
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
