#include "actors/agent/routed_launcher.hpp"

#include "actors/agent/store_files.hpp"
#include "actors/common/action_handlers.hpp"
#include "actors/common/history_conversion.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <utility>

namespace dlrun::agent {
namespace {

/// Of the store of a PS shard in the run folder.
void tell_failed(const std::function<void(const protocol::job_event&)>& tell, const result<void>& done) {
  if (!done) tell({"run-folder-failed", {protocol::role_kind::agent, 0}, {1}, done.error().message});
}

} // namespace

routed_launcher::routed_launcher(routed_launcher_options options)
    : options_{std::move(options)}
    , hosts_{options_.hosts}
    , launches_{options_.issue}
    , linked_{hosts_.roster(), options_.folder_of} {
  waiting_.show(hosts_);
}

void routed_launcher::begin() { carry_out(hosts_.begin(options_.now())); }

// ---- the launcher of the agent

void routed_launcher::start(const launch_order& order, const launch_events& events) {
  if (order.coordinator) hosts_.coordinator_is(order.coordinator->self.incarnation, order.coordinator->at);
  launches_.put(order, events);
  carry_out(hosts_.start(order.role, order.self, options_.now(), order.copies));
}

std::vector<protocol::running_start> routed_launcher::take_over(const launch_events& events) {
  waiting_.note_begun();
  hosted_actions actions;
  auto all = hosts_.take_over(options_.now(), actions);
  for (const auto& one : all) launches_.adopt(one, events, hosts_.places().host_of(one.role));
  carry_out(actions);
  return all;
}

std::vector<seen_work> routed_launcher::look() {
  auto all = options_.here->look();
  for (auto& one : work_in(hosts_.reports())) all.push_back(std::move(one));
  return all;
}

void routed_launcher::stop(const protocol::role_name& role, const protocol::fence& self,
                           protocol::stop_how how) {
  if (hosts_.starts().find(role, self) != nullptr)
    carry_out(hosts_.stop(role, self, how, options_.now()));
  else
    options_.here->stop(role, self, how);
}

// ---- hosts

protocol::join_reply routed_launcher::on_joined(const protocol::host_joined& joined,
                                                const protocol::host_agent_actor& who) {
  std::string refused;
  const auto actions = hosts_.on_joined(joined, options_.now(), refused);
  if (refused.empty()) linked_.put(joined.host, joined.boot, who);
  carry_out(actions);
  const bool leaves = joined.cpus == 0; // and may have left by now
  if (refused.empty() && !leaves && !joined.data_at.empty()) {
    data_givers_[joined.host] = joined.data_at;
    options_.data_givers_are(data_givers_);
  }
  return {refused.empty(), refused, options_.hosts.root_process};
}

result<admission> routed_launcher::admit(const arriving_host& who) {
  hosted_actions actions;
  auto admitted = options_.may_join(who).and_then([&] { return hosts_.admit(who, options_.now(), actions); });
  if (!admitted) waiting_.note_turned_away(who.name, who.address, options_.now());
  carry_out(actions);
  return admitted;
}

void routed_launcher::on_enrolment_ended(const admission& who, const std::string& why) {
  carry_out(hosts_.on_command_ended(who.host, who.attempt, "has ended: " + why, options_.now()));
}

void routed_launcher::on_report(const protocol::start_report& report) {
  carry_out(hosts_.on_report(report, options_.now()));
}

result<protocol::role_credentials>
routed_launcher::on_credentials_wanted(const protocol::credentials_wanted& wanted) {
  if (wanted.role.kind == protocol::role_kind::host_agent)
    if (const auto host = linked_.host_of(wanted.incarnation.value); !host.empty())
      return options_.issue(wanted.role, host);
  return launches_.renew(wanted.role, wanted.incarnation);
}

void routed_launcher::on_down(const caf::actor_addr& who) {
  const auto host = linked_.host_of(who);
  if (!host.empty()) carry_out(hosts_.on_link_lost(host, linked_.find(host)->boot, options_.now()));
}

void routed_launcher::tick() {
  options_.beats->note_turn();
  carry_out(hosts_.tick(options_.now()));
  options_.keep_own_fresh(options_.now());
}

void routed_launcher::dismiss(const std::string& reason) {
  linked_.close();
  carry_out(hosts_.dismiss(reason));
}

// ---- what the core decided

void routed_launcher::carry_out(const hosted_actions& actions) {
  const auto carry = common::action_handlers{[this](const kill_command& action) {
                                               options_.starter->kill(action.host);
                                               options_.end_enrolment(action.host);
                                             },
                                             [this](const end_command& action) {
                                               options_.starter->ask_to_end(action.host);
                                               options_.end_enrolment(action.host);
                                             },
                                             [this](const forget_beats& action) { // the host is lost
                                               options_.beats->forget(action.host);
                                               if (data_givers_.erase(action.host) != 0)
                                                 options_.data_givers_are(data_givers_);
                                             },
                                             [this](const protocol::job_event& event) {
                                               if (event.event == "host-not-started")
                                                 waiting_.fail_with(event.text);
                                               tell_(event);
                                             },
                                             [this](const tell_launch& action) { launches_.tell(action); },
                                             [this](const auto& action) { carry_out(action); }};
  for (const auto& action : actions) std::visit(carry, action);
  waiting_.show(hosts_);
}

void routed_launcher::carry_out(const to_host& action) {
  const auto* link = linked_.find(action.host);
  if (link == nullptr || !link->agent) return;
  if (const auto* order = std::get_if<protocol::start_order>(&action.message))
    return send(link->agent, *order, action.host);
  std::visit([&](const auto& message) { caf::anon_send(link->agent, message); }, action.message);
}

void routed_launcher::send(const protocol::host_agent_actor& to, protocol::start_order order,
                           const std::string& host) {
  auto* launch = launches_.find(order.role, order.self.incarnation);
  if (launch == nullptr || !certify(*launch, host)) return; // the order is repeated
  const auto is_copied_here = [&](const auto& entry) {
    return protocol::keeps_copy_of(entry.first, {order.role.index}) &&
           entry.second.host == options_.hosts.root;
  };
  if (order.role.kind == protocol::role_kind::ps_shard &&
      std::ranges::none_of(hosts_.places().all(), is_copied_here))
    tell_failed(tell_, set_store_aside(common::store_directory(options_.run_dir, {order.role.index})));
  order.credentials = *launch->order.credentials;
  order.agent = options_.hosts.root_process;
  caf::anon_send(to, std::move(order));
}

/// @returns whether it has credentials for that host.
bool routed_launcher::certify(kept_launch& launch, const std::string& host) {
  const auto done = launches_.certify(launch, host);
  if (!done)
    tell_({"credentials-failed", launch.order.role, launch.order.self.incarnation, done.error().message});
  return done.has_value();
}

void routed_launcher::carry_out(const start_here& action) {
  auto launch = launches_.take(action.role, action.self.incarnation);
  if (!launch) return;
  if (action.role.kind == protocol::role_kind::ps_shard || action.role.kind == protocol::role_kind::keeper) {
    const auto store = common::store_directory(options_.run_dir, protocol::shard_of(action.role));
    // With an empty one in its place it would never be had back.
    if (const auto taken = take_store_back(store); !taken)
      return launch->events.start_failed(action.role, action.self, taken.error());
  }
  if (certify(*launch, options_.hosts.root))
    options_.here->start(launch->order, launch->events);
  else
    launch->events.start_failed(action.role, action.self,
                                {error_code::system, "no certificate can be made for it"});
}

void routed_launcher::carry_out(const run_command& action) {
  options_.starter->run(action.host, [this, post = post_, action](const std::string& why) {
    post([this, action, why] {
      carry_out(hosts_.on_command_ended(action.host, action.attempt, why, options_.now()));
    });
  });
}

void routed_launcher::carry_out(const watch_beats& action) {
  const auto tell = [this, post = post_, action](const sighting& seen) {
    if (seen.seen == sight::moved_on) waiting_.note_moved_on(action.host);
    post([this, action, seen] {
      carry_out(hosts_.on_sighting(action.host, action.boot, seen, options_.now()));
    });
  };
  const auto watched =
      options_.beats->watch(host_seen_by_root(options_.beat_key, action.host, action.boot), tell);
  DLRUN_CHECK(watched.has_value(), "a peer without an address has no wrong one");
}

} // namespace dlrun::agent
