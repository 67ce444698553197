#include "tests/simulation/process.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {

constexpr protocol::role_name coordinator_role{protocol::role_kind::coordinator, 0};

void process::send(protocol::role_name to, message what) { world_.send(*this, to, std::move(what)); }

void process::after(protocol::duration delay, std::function<void()> what) {
  world_.after(delay, this, std::move(what));
}

void process::every(protocol::duration period, std::function<void()> what) {
  what();
  after(period, [this, period, what = std::move(what)] { every(period, what); });
}

void member_process::start() { ask_to_join(); }

void member_process::ask_to_join() {
  if (admitted_) return;
  const protocol::endpoint at{"127.0.0.1", 1, self().incarnation.value, {}};
  send(coordinator_role, protocol::join{role(), self(), 1, at, "the same everywhere"});
  after(world_.plan().period, [this] { ask_to_join(); });
}

void member_process::receive(const message& what) {
  if (const auto* answer = std::get_if<answered_join>(&what)) {
    if (admitted_ || answer->asker != self().incarnation) return;
    if (!answer->reply.accepted) {
      world_.say(this, "is refused: {}", answer->reply.reason);
      return end_fenced({});
    }
    admitted_ = true;
    return begin();
  }
  if (admitted_) hear(what);
}

void member_process::end_fenced(incarnation newest) {
  world_.say(this, "is fenced by incarnation {}", newest);
  if (!taken_for_dead) world_.broken("R4", "{} was fenced although it is the newest start", name());
  world_.kill(*this, "fenced");
}

} // namespace dlrun::simulation
