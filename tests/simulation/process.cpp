#include "tests/simulation/process.hpp"

#include "tests/simulation/world.hpp"

#include <utility>

namespace dlrun::simulation {

bool process::reaches(const process& other, protocol::time_point sent) const {
  return group == other.group && world_.hosts().has_passed_since(sent, host_, other.host_);
}

bool process::reaches(const process& other) const { return reaches(other, world_.now()); }

protocol::time_point process::now() const { return world_.hosts().shows(host_, world_.now()); }

void process::freeze() {
  if (!alive || frozen) return;
  world_.say(this, "is frozen");
  frozen = true;
}

void process::thaw() {
  if (!alive || !frozen) return;
  world_.say(this, "thaws");
  frozen = false;
  for (auto& one : std::exchange(deferred, {})) after(protocol::duration::zero(), std::move(one.what));
}

void process::send(protocol::role_name to, message what) { world_.send(*this, to, std::move(what)); }

void process::after(protocol::duration delay, std::function<void()> what) {
  world_.after(delay, this, std::move(what));
}

void process::every(protocol::duration period, std::function<void()> what) {
  what();
  after(period, [this, period, what = std::move(what)] { every(period, what); });
}

void member_process::start() {
  if (const auto* up = world_.newest(coordinator_role))
    joining_ = {up->self().incarnation, up->endpoint().process};
  ask_to_join();
  if (world_.plan().hosts.are_several()) every(world_.plan().period, [this] { give_sign_of_life(); });
}

void member_process::give_sign_of_life() {
  send(agent_role, protocol::heartbeat{.role = role(),
                                       .self = self(),
                                       .state = admitted_ ? "training" : "starting",
                                       .coordinator = joining_});
}

/// Until the newest coordinator has answered; again when the agent tells of another.
void member_process::ask_to_join() {
  after(world_.plan().period, [this] { ask_to_join(); });
  if (coordinator_ >= joining_.incarnation) return;
  send(coordinator_role, protocol::join{role(), self(), 1, endpoint(), "the same everywhere", {}, opened()});
}

void member_process::follow(const protocol::known_coordinator& newest) {
  if (newest.incarnation > joining_.incarnation) joining_ = newest;
}

void member_process::receive(const message& what) {
  if (const auto* answer = std::get_if<answered_join>(&what)) {
    if (answer->asker != self().incarnation || answer->coordinator.incarnation < joining_.incarnation ||
        answer->coordinator.incarnation <= coordinator_)
      return;
    if (!answer->reply.accepted) {
      world_.say(this, "is refused: {}", answer->reply.reason);
      return end_fenced({});
    }
    coordinator_ = answer->coordinator.incarnation;
    follow(answer->coordinator);
    if (answer->reply.store_is_short) renew_store();
    if (!std::exchange(admitted_, true)) begin();
    return;
  }
  if (const auto* moved = std::get_if<coordinator_moved>(&what)) {
    return follow(moved->coordinator);
  }
  if (admitted_) hear(what);
}

void member_process::end_fenced(incarnation newest) {
  world_.say(this, "is fenced by incarnation {}", newest);
  if (!taken_for_dead && !world_.happened().journal_lost)
    broken("R4", "{} was fenced although it is the newest start", name());
  world_.kill(*this, "fenced");
}

} // namespace dlrun::simulation
