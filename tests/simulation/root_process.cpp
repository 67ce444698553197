#include "tests/simulation/root_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "tests/simulation/host_process.hpp"
#include "tests/simulation/world.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

template <class Duration>
constexpr Duration scaled(Duration of_product) {
  return of_product / faster;
}

agent::agent_core_config core_config(world& where, std::uint64_t number) {
  agent::agent_core_config config;
  const auto& plan = where.plan();
  config.workers = plan.workers;
  config.ps_shards = plan.job.ps_shards;
  config.scale = {.least = 1, .most = plan.workers_max, .slots = plan.job.slots};
  config.leave_grace = std::chrono::duration_cast<std::chrono::milliseconds>(plan.period * 20);
  config.agent = number;
  config.coordinator = {{where.journal().owner.value + 1}, where.random().next()};
  config.state_is_durable = plan.is_durable();
  config.restart_intensity = 1000;
  config.shutdown_patience = scaled(config.shutdown_patience);
  config.life.hang_after = scaled(config.life.hang_after);
  config.life.start_patience = scaled(config.life.start_patience);
  config.grant_patience = scaled(config.grant_patience);
  config.report_patience = scaled(config.report_patience);
  config.bug = where.bug();
  if (plan.journal_is_remote) config.journal_patience = std::chrono::milliseconds(60);
  return config;
}

/// Those that are not gone for ever: who resumes a run takes these out of the list.
agent::hosted_roles_config hosts_config(world& where, std::uint64_t number) {
  agent::hosted_roles_config config;
  config.root = name_of_host(0);
  config.root_cpus = 2;
  for (std::uint32_t host = 1; host < where.hosts().count(); ++host)
    if (!where.hosts().is_gone(host)) config.hosts[name_of_host(host)] = 0;
  config.coordinator_moves = where.plan().journal_is_remote;
  config.root_stores = where.stores().held_at(0);
  config.rules = simulated_host_rules();
  config.root_process = number;
  config.takes_over = where.plan().hosts.takes_over && number > 1;
  if (config.takes_over) config.rules.reattach_patience = reattach_patience;
  for (std::uint64_t earlier = 1; earlier < number; ++earlier) config.roots_of_same_job.insert(earlier);
  config.store_patience = store_patience;
  config.repeat_after = order_again_after;
  config.bug = where.bug();
  return config;
}

} // namespace

root_process::root_process(world& where, std::uint64_t number)
    : job_agent(where, agent_role, {{number}, 0})
    , number_(number)
    , core_(core_config(where, number))
    , hosts_(hosts_config(where, number))
    , checks_(where, hosts_.roster())
    , beats_(
          where, *this, boot_of_root(where.plan().hosts, number),
          [this](protocol::role_name to, const host_beat& datagram) { send(to, datagram); },
          [this] { return now(); }, number << 40U)
    , roles_(where, *this, number,
             {.started = [this](const auto& role,
                                const auto& self) { perform(core_.on_started(role, self, 1, now())); },
              .exited =
                  [this](const auto& role, const auto& self, const auto& how) {
                    note_end(role, self);
                    perform(core_.on_exited(role, self, how, now()));
                  }})
    , commands_(where, *this, number, [this](std::uint32_t host, std::uint64_t attempt, const auto& why) {
      carry_out(hosts_.on_command_ended(name_of_host(host), attempt, why, now()));
    }) {}

void root_process::start() {
  beats_.begin();
  carry_out(hosts_.begin(now()));
  every(host_tick, [this] { on_tick(); });
}

void root_process::on_tick() {
  beats_.note_turn();
  if (!has_begun_ && hosts_.roster().missing().empty()) {
    has_begun_ = true;
    take_over();
  }
  if (has_begun_) perform(core_.on_tick(now()));
  carry_out(hosts_.tick(now()));
  commands_.tick();
  look_after_links();
}

/// R35.
void root_process::take_over() {
  agent::hosted_actions actions;
  const auto running = hosts_.take_over(now(), actions);
  for (const auto& one : running) {
    checks_.asked(one.role, one.self.incarnation);
    for (auto* found : world_.living(one.role))
      if (found->self() == one.self) found->taken_for_dead = found->given_up;
  }
  carry_out(actions);
  perform(core_.start(now(), running));
}

void root_process::scale(std::uint32_t workers) {
  agent::agent_actions actions;
  if (core_.on_scale_request(workers, actions)) perform(actions);
}

bool root_process::addresses(const process& receiver) const {
  return receiver.role() != coordinator_role || receiver.self().incarnation == coordinator_;
}

// ---- what it hears

void root_process::receive(const message& what) {
  std::visit(
      common::action_handlers{[&](const host_beat& one) { beats_.receive(one); },
                              [&](const protocol::heartbeat& one) { on_heartbeat(one); },
                              [&](const protocol::join& one) { on_coordinator(one); },
                              [&](const protocol::grant& one) {
                                if (one.agent == number_) perform(core_.on_grant(one, now()));
                              },
                              [&](const protocol::start_over& one) { perform(core_.on_start_over(one)); },
                              [&](const protocol::workers_wanted& one) {
                                if (one.agent == number_) perform(core_.on_workers_wanted(one, now()));
                              },
                              [&](const protocol::job_ended& one) { on_job_ended(one); },
                              [&](const auto&) { on_host_message(what); }},
      what);
}

void root_process::on_heartbeat(const protocol::heartbeat& beat) {
  perform(core_.on_heartbeat(beat, now()));
  const bool has_to_join = beat.role == coordinator_role && lacks_coordinator();
  if (coordinator_at_.process != 0 && !has_to_join) send(beat.role, coordinator_moved{coordinator_at_});
}

void root_process::on_coordinator(const protocol::join& join) {
  if (!core_.book().accepts(join)) return;
  coordinator_ = join.self.incarnation;
  coordinator_at_ = {coordinator_, join.at.process};
  hosts_.coordinator_is(coordinator_, join.at);
  send(coordinator_role, agent_hello{number_});
  perform(core_.on_coordinator_joined(join.at.process, now()));
}

void root_process::on_job_ended(const protocol::job_ended& ended) {
  const bool was_ending = core_.ending();
  const auto actions = core_.on_job_ended(ended, now());
  if (!was_ending && core_.ending()) return end(ended);
  perform(actions);
}

void root_process::end(const protocol::job_ended& ended) {
  world_.say(this, "the job has ended: {}", ended.reason);
  world_.end().ended = ended;
}

void root_process::on_host_message(const message& what) {
  const auto is_from_linked = [&](const std::string& name, std::uint64_t boot) {
    const auto host = host_of_name(name);
    const auto& link = links_[host];
    if (link.is_up && link.boot == boot) return true;
    // What comes over a connection that is gone here ends it there.
    for (auto* one : world_.living(host_agent_role(host)))
      if (one->self().incarnation.value == boot) static_cast<host_process*>(one)->lose_link();
    return false;
  };
  if (const auto* hello = std::get_if<host_hello>(&what); hello != nullptr && hello->root == number_) {
    on_hello(hello->joined);
  } else if (const auto* one = std::get_if<host_report>(&what); one != nullptr && one->root == number_) {
    if (is_from_linked(one->report.host, one->report.boot)) carry_out(hosts_.on_report(one->report, now()));
  } else if (const auto* work = std::get_if<host_work>(&what); work != nullptr && work->root == number_) {
    if (is_from_linked(work->work.host, work->work.boot)) hosts_.on_work(work->work, now());
  }
}

void root_process::on_hello(const protocol::host_joined& joined) {
  std::string refused;
  const auto host = host_of_name(joined.host);
  const bool is_new = hosts_.roster().boot_of(joined.host) != joined.boot;
  const auto actions = hosts_.on_joined(joined, now(), refused);
  if (refused.empty()) {
    const auto lasts = world_.random().milliseconds(connection_ms_min, connection_ms_max);
    links_[host] = {joined.boot, true, is_new ? world_.now() : links_[host].joined, lasts, {}};
  }
  carry_out(actions);
  send(host_agent_role(host), answered_hello{joined.boot, {refused.empty(), refused, number_}});
}

// ---- connections

void root_process::lose_link(std::uint32_t host) {
  auto& link = links_[host];
  if (!std::exchange(link.is_up, false)) return;
  world_.say(this, "loses the connection to host {}", name_of_host(host));
  carry_out(hosts_.on_link_lost(name_of_host(host), link.boot, now()));
}

/// Who ended says so where packets pass; else nothing is heard for too long.
bool root_process::is_over(std::uint32_t host, const host_link& link) const {
  const auto agents = world_.living(host_agent_role(host));
  const bool is_there = std::ranges::any_of(
      agents, [&](const auto* one) { return one->self().incarnation.value == link.boot; });
  if (!is_there && world_.hosts().is_up(host) && world_.hosts().passes_both_ways(0, host)) return true;
  const auto since = is_there ? world_.hosts().cut_since(host) : world_.hosts().outage_of(host).since;
  return since && world_.now() - *since > link.lasts;
}

void root_process::look_after_links() {
  for (auto& [host, link] : links_) {
    if (link.is_up && is_over(host, link)) lose_link(host);
    if (link.is_up && link.dismissal) send(host_agent_role(host), *link.dismissal);
    const auto name = name_of_host(host);
    if (hosts_.roster().boot_of(name) == link.boot && beats_.sees(name) != agent::sight::unproven)
      checks_.check_silence(host, link.joined);
  }
}

// ---- what the cores decided

void root_process::perform(const agent::agent_actions& actions) {
  const auto carry =
      common::action_handlers{[this](const agent::start_role& order) {
                                checks_.asked(order.role, order.self.incarnation);
                                carry_out(hosts_.start(order.role, order.self, now()));
                              },
                              [this](const agent::stop_role& order) {
                                if (hosts_.starts().find(order.role, order.self) != nullptr)
                                  carry_out(hosts_.stop(order.role, order.self, order.how, now()));
                                else
                                  roles_.stop(order.role, order.self, order.how);
                              },
                              [this](const agent::to_coordinator& order) {
                                if (coordinator_ == incarnation{}) return;
                                std::visit([this](const auto& what) { send(coordinator_role, what); }, order);
                              },
                              [this](const agent::announce& order) {
                                world_.say(this, "{}: {}", order.event.event, order.event.text);
                              },
                              [this](const agent::all_stopped& order) { end(order.ended); }};
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(carry, action);
  }
}

void root_process::carry_out(const agent::hosted_actions& actions) {
  const auto carry = common::action_handlers{
      [this](const agent::start_here& order) {
        if (order.role.kind == protocol::role_kind::ps_shard)
          checks_.check_place(order.role, order.self.incarnation, 0);
        roles_.start(order.role, order.self);
      },
      [this](const protocol::job_event& event) {
        world_.say(this, "{}: {}", event.event, event.text);
        if (event.event == "host-lost")
          checks_.check_loss(event, links_[host_of_name(event.place.host)].boot);
      },
      [this](const agent::run_command& order) { commands_.run(host_of_name(order.host), order.attempt); },
      [this](const agent::kill_command& order) { commands_.kill(host_of_name(order.host), order.attempt); },
      [](const agent::end_command&) {},
      [this](const agent::forget_beats& order) { beats_.forget(order.host); },
      [this](const auto& order) { carry_out_one(order); }};
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(carry, action);
  }
}

void root_process::carry_out_one(const agent::to_host& action) {
  const auto host = host_of_name(action.host);
  if (const auto* order = std::get_if<protocol::start_order>(&action.message);
      order != nullptr && order->role.kind == protocol::role_kind::ps_shard)
    checks_.check_place(order->role, order->self.incarnation, host);
  if (!links_[host].is_up) return;
  if (const auto* dismissal = std::get_if<protocol::dismissal>(&action.message))
    links_[host].dismissal = *dismissal; // the connection says it again where packets are lost
  auto told = action.message;
  if (auto* order = std::get_if<protocol::start_order>(&told)) order->agent = number_;
  std::visit(
      [&](const auto& what) {
        send(host_agent_role(host), what);
        if (world_.calm() || !world_.random().chance(world_.plan().hosts.late_orders)) return;
        world_.after(world_.random().milliseconds(40, 400), nullptr,
                     [this, host, what] { send(host_agent_role(host), what); });
      },
      told);
}

void root_process::carry_out_one(const agent::tell_launch& action) {
  if (std::holds_alternative<agent::role_runs>(action.what))
    return perform(core_.on_started(action.role, action.self, 1, now()));
  note_end(action.role, action.self);
  if (const auto* why = std::get_if<error>(&action.what))
    perform(core_.on_start_failed(action.role, action.self, *why, now()));
  else
    perform(core_.on_exited(action.role, action.self, std::get<agent::role_end>(action.what), now()));
}

void root_process::carry_out_one(const agent::watch_beats& action) {
  beats_.watch(action.host, host_agent_role(host_of_name(action.host)), action.boot,
               [this, action](const agent::sighting& seen) {
                 carry_out(hosts_.on_sighting(action.host, action.boot, seen, now()));
               });
}

/// It may live on, on a host that is given up.
void root_process::note_end(const protocol::role_name& role, const protocol::fence& self) {
  if (role.kind == protocol::role_kind::ps_shard) world_.happened().ps_shard_lost = true;
  if (role.kind == protocol::role_kind::worker) world_.happened().worker_lost = true;
  world_.take_for_dead(role, self.incarnation);
}

} // namespace dlrun::simulation
