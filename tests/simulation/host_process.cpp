#include "tests/simulation/host_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "tests/simulation/root_process.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

agent::host_agent_config host_config(const world& where, std::uint32_t host, std::uint64_t boot) {
  agent::host_agent_config config;
  config.host = name_of_host(host);
  config.boot = boot;
  config.orphan_grace = orphan_grace;
  config.repeat_after = order_again_after;
  config.bug = where.bug();
  return config;
}

} // namespace

host_process::host_process(world& where, std::uint32_t host, std::uint64_t boot, std::uint64_t root)
    : process(where, host_agent_role(host), {{boot}, 0}, host)
    , started_by_(root)
    , root_(root)
    , core_(host_config(where, host, boot), where.hosts().shows(host, where.now()))
    , beats_(
          where, *this, boot,
          [this](protocol::role_name to, const host_beat& datagram) { send(to, datagram); },
          [this] { return now(); })
    , roles_(where, *this, root,
             {.started =
                  [this](const auto& role, const auto& self) {
                    note_start(role, self.incarnation);
                    carry_out(core_.on_started(role, self, 1, now()));
                  },
              .exited = [this](const auto& role, const auto& self,
                               const auto& how) { carry_out(core_.on_exited(role, self, how, now())); }})
    , connection_lasts_(where.random().milliseconds(connection_ms_min, connection_ms_max)) {}

void host_process::start() {
  beats_.watch("root", agent_role, boot_of_root(world_.plan().hosts, root_),
               [this](const agent::sighting& seen) {
                 world_.say(this, "sees the root {}", seen.seen == agent::sight::there ? "there" : "silent");
                 core_.on_sighting(seen, now());
               });
  beats_.begin();
  every(host_tick, [this] { on_tick(); });
}

/// The root is gone, or nothing has passed for too long.
bool host_process::is_link_over() const {
  const auto roots = world_.living(agent_role);
  const bool is_there =
      std::ranges::any_of(roots, [this](const auto* one) { return one->self().incarnation.value == root_; });
  const auto cut = world_.hosts().cut_since(host());
  return cut ? world_.now() - *cut > connection_lasts_ : !is_there;
}

void host_process::lose_link() {
  if (!core_.has_link()) return;
  world_.say(this, "loses its connection");
  core_.on_link_lost(now());
}

void host_process::on_tick() {
  beats_.note_turn();
  carry_out(core_.on_tick(now()));
  if (!alive) return;
  if (core_.has_link() && is_link_over()) lose_link();
  if (core_.has_link())
    send(agent_role, host_work{root_, core_.work_report({})});
  else
    say_hello();
}

/// A root that takes over is where the one before it was.
void host_process::say_hello() {
  if (world_.plan().hosts.takes_over)
    for (const auto* one : world_.living(agent_role)) root_ = one->self().incarnation.value;
  send(agent_role, host_hello{root_,
                              {.host = name_of_host(host()),
                               .boot = boot(),
                               .pid = 1,
                               .cpus = 2,
                               .stores = world_.stores().held_at(host()),
                               .root = started_by_,
                               .running = core_.running()}});
}

void host_process::receive(const message& what) {
  std::visit(common::action_handlers{
                 [&](const host_beat& one) { beats_.receive(one); },
                 [&](const answered_hello& one) {
                   if (one.boot != boot() || one.reply.agent != root_) return; // of a root before
                   if (!one.reply.accepted) return world_.kill(*this, "refused: " + one.reply.reason);
                   if (!core_.has_link()) carry_out(core_.on_link(now(), one.reply.agent));
                 },
                 [&](const protocol::start_order& one) { carry_out(core_.on_start_order(one, now())); },
                 [&](const protocol::stop_order& one) { carry_out(core_.on_stop_order(one)); },
                 [&](const protocol::start_told& one) { core_.on_start_told(one); },
                 [&](const protocol::dismissal& one) { carry_out(core_.on_dismissal(one)); },
                 [](const auto&) {}},
             what);
}

void host_process::died() { roles_.kill_all("its agent has ended"); }

void host_process::carry_out(const agent::host_agent_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit([this](const auto& what) { carry_out_one(what); }, action);
  }
}

/// R24.
void host_process::carry_out_one(const agent::launch_role& action) {
  if (action.order.boot != boot())
    broken("R24", "{} of host {} starts {} by an order for its start {}", name(), name_of_host(host()),
           protocol::to_string(action.order.role), action.order.boot);
  ordered_by_[{action.order.role, action.order.self.incarnation}] = action.order.agent;
  roles_.start(action.order.role, action.order.self);
}

/// The agent of the job that ordered it may be gone: the next one does not know of it, unless it
/// takes it over (R35).
void host_process::note_start(const protocol::role_name& role, incarnation start) {
  const auto by = ordered_by_.at({role, start});
  const auto agents = world_.living(agent_role);
  if (std::ranges::any_of(agents, [&](const auto* one) { return one->self().incarnation.value == by; }))
    return;
  for (auto* one : world_.living(role))
    if (one->self().incarnation == start) one->taken_for_dead = true;
}

void host_process::carry_out_one(const agent::end_role& action) {
  roles_.stop(action.role, action.self, action.how);
}

void host_process::carry_out_one(const agent::tell_agent& action) {
  send(agent_role, host_report{root_, action.report});
}

void host_process::carry_out_one(const agent::leave& action) { world_.kill(*this, action.reason); }

} // namespace dlrun::simulation
