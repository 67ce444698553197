#include "actors/agent/agent.hpp"

#include "actors/agent/event_json.hpp"
#include "actors/agent/host_agent_core.hpp"
#include "actors/agent/host_losses.hpp"
#include "actors/agent/posted_events.hpp"
#include "actors/common/ask.hpp"
#include "base/atomic_file.hpp"
#include "job/choices.hpp"
#include "job/run_layout.hpp"
#include <dlrun/report.hpp>

#include <chrono>
#include <fmt/ranges.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto journal_deadline = std::chrono::seconds(5);

bool state_is_durable(const agent_arguments& arguments) {
  return job::durability_log_of(arguments.job->spec) != job::durability_log::off;
}

agent_core_config core_config(const agent_arguments& arguments) {
  const auto& cluster = arguments.job->spec.cluster();
  agent_core_config config{
      .workers = arguments.job->workers(),
      .ps_shards = arguments.job->ps_shards(),
      .copies = arguments.job->copies(),
      .scale = {.least = std::max(1U, static_cast<std::uint32_t>(cluster.workers_min())),
                .most = arguments.job->workers_max(),
                .slots = arguments.job->microbatches_per_step()},
      .leave_grace = protocol::from_seconds<std::chrono::milliseconds>(cluster.leave_grace_s()),
      .agent = arguments.job->process,
      .coordinator = arguments.coordinator,
      .state_is_durable = state_is_durable(arguments),
      .restart_intensity = static_cast<std::size_t>(cluster.restart().intensity()),
      .restart_period = protocol::from_seconds<std::chrono::milliseconds>(cluster.restart().period_s())};
  if (arguments.hosts && cluster.journal().has_etcd()) config.journal_patience = std::chrono::seconds(45);
  if (cluster.slot_timeout_s() > 0)
    config.life.slot_timeout = protocol::from_seconds<protocol::duration>(cluster.slot_timeout_s());
  return config;
}

/// The root's first.
std::vector<host_view> hosts_of(const agent_arguments& arguments, const std::vector<role_view>& shown,
                                const base::memory_use& own_memory) {
  if (!arguments.hosts) return {};
  const auto& roles = arguments.hosts->roles();
  const auto states = roles.roster().states();
  std::vector<host_view> all;
  all.reserve(states.size() + 1);
  all.push_back({.name = roles.root(), .state = "there", .memory = own_memory});
  for (const auto& [host, state] : states) {
    host_view view{.name = host,
                   .state = std::string{to_string(state)},
                   .address = roles.joining().address_of(host),
                   .memory = memory_of(roles.reports(), host)};
    if (arguments.drains && arguments.drains->all().contains(host)) {
      const auto& drain = arguments.drains->all().at(host);
      view.state = to_string(drain.stage);
      view.waits_for = drain.waits_for;
      view.needs_a_host = drain.needs_a_host;
      view.without_copies = drain.without_copies;
    }
    all.push_back(std::move(view));
  }
  const auto losses = losses_by_host(roles.root(), shown, roles.places());
  for (auto& view : all)
    if (const auto found = losses.find(view.name); found != losses.end()) view.loses = found->second;
  return all;
}

/// What a job that has not begun waits for, for people; "": nothing.
std::string hosts_awaited(const hosted_roles& hosts) {
  if (const auto missing = hosts.roster().missing(); !missing.empty())
    return fmt::format("hosts: {}", fmt::join(missing, ", "));
  const auto others = hosts.joining().awaited(hosts.roster(), hosts.places());
  return others.empty() ? "" : "more hosts: " + others;
}

event_file open_events(const std::filesystem::path& path) {
  event_file::mend_last_line(path); // of a root that was killed
  return event_file{path};
}

const char* status_word(protocol::job_outcome outcome) {
  switch (outcome) {
  case protocol::job_outcome::completed: return "completed";
  case protocol::job_outcome::interrupted: return "interrupted";
  case protocol::job_outcome::failed: break;
  }
  return "failed";
}

} // namespace

agent_state::behavior agent_state::start(pointer self, agent_arguments arguments) {
  self->state.role.reset(new agent_state(self, std::move(arguments)));
  auto* role = self->state.role.get();
  if (role->arguments_.hosts) role->begin_hosts();
  return role->make_behavior();
}

agent_state::agent_state(pointer self, agent_arguments arguments)
    : self_{self}
    , arguments_{std::move(arguments)}
    , core_{core_config(arguments_)}
    , wind_up_{self_,
               {.run_dir = arguments_.job->run_dir,
                .run = arguments_.job->run,
                .ps_shards = state_is_durable(arguments_) ? arguments_.job->ps_shards() : 0,
                .hosts = arguments_.hosts,
                .gathers = arguments_.gathers,
                .lacking = arguments_.lacking,
                .deliver = arguments_.deliver,
                .tell = [this](const protocol::job_event& event) { add_event(event); },
                .done = [this](const protocol::job_ended& ended, bool may_go) { finish(ended, may_go); }}}
    , events_{open_events(arguments_.job->run_dir / run_layout::events)} {}

agent_state::behavior agent_state::make_behavior() {
  return {
      [this](const protocol::join& join, const protocol::coordinator_actor& who) {
        return on_join(join, who);
      },
      [this](const protocol::grant& grant) { on_grant(grant); },
      [this](const protocol::start_over& which) { carry_out(core_.on_start_over(which)); },
      [this](const protocol::workers_wanted& word) { on_workers_wanted(word); },
      [this](const protocol::scale_request& request) { return on_scale_request(request); },
      [this](const protocol::journal_part_wanted& wanted) { return on_journal_part_wanted(wanted); },
      [this](const protocol::job_event& event) { add_event(event); },
      [this](const protocol::stall& what) { on_stall(what); },
      [this](const protocol::job_ended& ended) {
        wind_up_.on_job_ended(ended);
        carry_out(core_.on_job_ended(ended, arguments_.now()));
      },
      [this](const protocol::heartbeat& beat) { return on_heartbeat(beat); },
      [this](const protocol::stop_job& stop) {
        if (arguments_.gathers) return wind_up_.stop(stop.reason);
        if (stop.brings_stores) wind_up_.bring_all();
        carry_out(core_.on_stop(stop, arguments_.now()));
      },
      [this](const protocol::host_joined& joined, const protocol::host_agent_actor& who) {
        return on_host_joined(joined, who);
      },
      [this](const protocol::start_report& report) {
        if (arguments_.hosts) arguments_.hosts->on_report(report);
      },
      [this](const protocol::work_report& work) {
        if (arguments_.hosts) arguments_.hosts->on_work(work);
      },
      [this](const protocol::credentials_wanted& wanted) { return on_credentials_wanted(wanted); },
      [this](const protocol::report_part& part) { return on_report_part(part); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

caf::result<protocol::join_reply> agent_state::on_join(const protocol::join& join,
                                                       const protocol::coordinator_actor& coordinator) {
  if (!started_) // an earlier root's comes back sooner than all hosts, and is not taken over yet
    return caf::make_error(caf::sec::runtime_error, "the job has not begun here");
  if (!core_.book().accepts(join))
    return protocol::join_reply{
        false, fmt::format("incarnation {} is not the coordinator's", join.self.incarnation)};
  coordinator_ = coordinator;
  coordinator_at_ = join;
  if (arguments_.hosts) self_->monitor(coordinator_);
  carry_out(core_.on_coordinator_joined(join.at.process, arguments_.now()));
  return protocol::join_reply{true, {}, arguments_.job->process};
}

/// What was issued to the root of an earlier start of the run is not for this one.
void agent_state::on_grant(const protocol::grant& grant) {
  if (grant.agent == arguments_.job->process) carry_out(core_.on_grant(grant, arguments_.now()));
}

caf::result<protocol::scale_reply> agent_state::on_scale_request(const protocol::scale_request& request) {
  if (arguments_.gathers) return protocol::scale_reply{false, "the job is complete"};
  agent_actions actions;
  const auto number = core_.on_scale_request(request.workers, actions);
  if (!number) return protocol::scale_reply{false, number.error().message};
  auto promise = self_->make_response_promise<protocol::scale_reply>();
  scaling_[*number] = promise;
  carry_out(actions);
  return promise;
}

/// Nobody but the coordinator knows what of it is durable.
caf::result<protocol::journal_part>
agent_state::on_journal_part_wanted(const protocol::journal_part_wanted& wanted) {
  if (!coordinator_) return protocol::journal_part{"there is no coordinator", 0, 0, {}};
  auto promise = self_->make_response_promise<protocol::journal_part>();
  common::ask(
      self_, coordinator_, journal_deadline, wanted,
      [promise](const protocol::journal_part& part) mutable { promise.deliver(part); },
      [promise](const caf::error& why) mutable {
        promise.deliver(
            protocol::journal_part{"the coordinator does not answer: " + to_string(why), 0, 0, {}});
      });
  return promise;
}

void agent_state::on_workers_wanted(const protocol::workers_wanted& word) {
  if (word.agent != arguments_.job->process) return;
  carry_out(core_.on_workers_wanted(word, arguments_.now()));
  if (scaling_.empty()) return;
  show(); // who has the answer and looks sees the new number
  while (!scaling_.empty() && scaling_.begin()->first <= word.request) {
    scaling_.begin()->second.deliver(protocol::scale_reply{true, {}});
    scaling_.erase(scaling_.begin());
  }
}

protocol::coordinator_location agent_state::on_heartbeat(const protocol::heartbeat& beat) {
  carry_out(core_.on_heartbeat(beat, arguments_.now()));
  if (arguments_.hosts && core_.book().runs(beat.role, beat.self)) arguments_.hosts->on_heartbeat(beat);
  const auto keepers = core_.book().keepers_for(beat);
  const bool has_to_join = beat.role.kind == protocol::role_kind::coordinator && !coordinator_;
  if (!coordinator_at_ || has_to_join) return {{}, {}, keepers};
  return {coordinator_at_->self.incarnation, coordinator_at_->at, keepers};
}

void agent_state::clear_ways() {
  if (!arguments_.hosts) return;
  agent_actions actions;
  const auto& places = arguments_.hosts->roles().places();
  for (const auto& keeper : keepers_in_the_way(places))
    core_.vacate(keeper, protocol::stop_how::kill, "its PS shard starts on its host, from the copy", actions);
  carry_out(actions);
}

// ---- other hosts

void agent_state::begin_hosts() {
  arguments_.hosts->agent_is([post = common::poster<protocol::agent_actor>{self_}](
                                 std::function<void()> task) { post(std::move(task)); },
                             [this](const protocol::job_event& event) { add_event(event); });
  if (arguments_.drains)
    arguments_.drains->agent_is({.roles = [this] { return core_.book().views(); },
                                 .vacate =
                                     [this](const departure& one) {
                                       agent_actions actions;
                                       const bool is_taken =
                                           core_.vacate(one.role, one.how, one.why, actions);
                                       carry_out(actions);
                                       return is_taken;
                                     },
                                 .stay = [this](const protocol::role_name& role) { core_.let_stay(role); },
                                 .tell = [this](const protocol::job_event& event) { add_event(event); },
                                 .show = [this] { show(); },
                                 .is_ending = [this] { return arguments_.gathers || core_.ending(); }});
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down.source); });
  arguments_.hosts->begin();
}

/// A connection is lost, or who was behind it is gone.
void agent_state::on_down(const caf::actor_addr& who) {
  if (coordinator_ && coordinator_.address() == who) coordinator_ = nullptr;
  arguments_.hosts->on_down(who);
}

protocol::join_reply agent_state::on_host_joined(const protocol::host_joined& joined,
                                                 const protocol::host_agent_actor& who) {
  if (!arguments_.hosts) return {false, "this job runs on one host"};
  const auto reply = arguments_.hosts->on_joined(joined, who);
  if (reply.accepted) self_->monitor(who);
  return reply;
}

caf::result<protocol::role_credentials>
agent_state::on_credentials_wanted(const protocol::credentials_wanted& wanted) {
  if (!arguments_.hosts) return caf::make_error(caf::sec::runtime_error, "this job runs on one host");
  auto made = arguments_.hosts->on_credentials_wanted(wanted);
  if (made) return std::move(*made);
  return caf::make_error(caf::sec::runtime_error, made.error().message);
}

/// Nobody waits for this actor by then, so it may wait for the disk.
protocol::report_taken agent_state::on_report_part(const protocol::report_part& part) {
  auto taken = report_.add(part);
  const auto whole = report_.take_whole();
  if (!whole) return taken;
  const auto written = base::write_file_atomically(arguments_.job->run_dir / run_layout::report, *whole);
  if (!written) taken.failure = written.error().message;
  return taken;
}

void agent_state::on_stall(const protocol::stall& what) {
  const auto host = arguments_.hosts ? arguments_.hosts->roles().places().host_of(what.role) : std::string{};
  if (auto event = stalls_.hear(what, host, arguments_.now())) add_event(*std::move(event));
  show();
}

void agent_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  turning_.turn();
  if (arguments_.gathers) return gather();
  if (!std::exchange(started_, true)) begin();
  carry_out(core_.on_tick(arguments_.now()));
  if (arguments_.hosts) arguments_.hosts->tick();
  clear_ways();
  if (arguments_.drains) arguments_.drains->tick(arguments_.now());
  for (const auto& seen : arguments_.launcher->look()) carry_out(core_.on_work_seen(seen, arguments_.now()));
  if (auto over = stalls_.look(core_.book().reports().step(), arguments_.now())) add_event(*std::move(over));
  events_.flush();
  show();
}

/// R38. No role runs, and none will.
void agent_state::gather() {
  arguments_.hosts->tick();
  wind_up_.gather(arguments_.now());
  events_.flush();
  show();
}

void agent_state::begin() {
  std::vector<protocol::running_start> running;
  if (arguments_.hosts) running = arguments_.hosts->take_over(make_launch_events());
  carry_out(core_.start(arguments_.now(), running));
}

void agent_state::show() {
  const bool may_wait = !started_ && arguments_.hosts && !arguments_.gathers;
  auto waits_for = may_wait ? hosts_awaited(arguments_.hosts->roles()) : std::string{};
  const auto* const now = waits_for.empty() ? "stopping" : "waiting";
  const bool is_ending = !waits_for.empty() || arguments_.gathers || core_.ending();
  run_snapshot snapshot{.job = arguments_.job->spec.name(),
                        .status = is_ending && status_ == "running" ? now : status_,
                        .waits_for = std::move(waits_for),
                        .step = core_.book().reports().step(),
                        .durable_step = core_.book().reports().durable_step(),
                        .steps = started_ ? arguments_.job->steps() : 0, // 'attach' waits for that
                        .train = std::nullopt,
                        .stall = stalls_.view(core_.book().reports().step(), arguments_.now()),
                        .workers = core_.book().workers(),
                        .roles = core_.book().views(),
                        .hosts = {},
                        .avoided_gpus = core_.book().avoided_gpus(),
                        .started_us = common::to_us(arguments_.job->started)};
  snapshot.hosts = hosts_of(arguments_, snapshot.roles, memory_.at(arguments_.now()));
  if (const auto& metrics = core_.book().reports().metrics())
    snapshot.train =
        progress_of(*metrics, arguments_.job->model->metrics(), core_.book().reports().metrics_step());
  snapshot.roles.push_back({{protocol::role_kind::agent, 0}, ::getpid(), {1}, "running"});
  arguments_.board->show(std::move(snapshot));
}

void agent_state::add_event(protocol::job_event event) {
  event.at_us = common::to_us(arguments_.now());
  arguments_.log->info("{}: {}", event.event, event.text);
  events_.append(to_json_line(event));
  arguments_.board->add_event(std::move(event));
  if (started_ || !arguments_.hosts) return;
  events_.flush(); // no ticks yet
  show();
}

// ---- what the core decided

void agent_state::carry_out(const agent_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

launch_events agent_state::make_launch_events() {
  return posted_events(common::poster<protocol::agent_actor>{self_}, core_, arguments_.now,
                       [this](const agent_actions& actions) { carry_out(actions); });
}

void agent_state::carry_out(const start_role& action) {
  launch_order order{action.role, action.self, std::nullopt};
  order.copies = action.copies;
  if (action.role.kind != protocol::role_kind::coordinator) order.coordinator = coordinator_at_;
  arguments_.launcher->start(order, make_launch_events());
  if (action.role.kind == protocol::role_kind::ps_shard) clear_ways();
}

void agent_state::carry_out(const stop_role& action) {
  arguments_.launcher->stop(action.role, action.self, action.how);
}

void agent_state::carry_out(const to_coordinator& action) {
  if (coordinator_) std::visit([this](const auto& message) { self_->send(coordinator_, message); }, action);
}

void agent_state::carry_out(const announce& action) { add_event(action.event); }

void agent_state::carry_out(const all_stopped& action) {
  for (auto& [number, asker] : std::exchange(scaling_, {}))
    asker.deliver(
        protocol::scale_reply{false, "the job ended before the coordinator had journaled the number"});
  wind_up_.begin(action.ended);
}

void agent_state::finish(const protocol::job_ended& ended, bool hosts_may_go) {
  status_ = status_word(ended.outcome);
  show();
  arguments_.board->finish(ended);
  if (!arguments_.hosts) return self_->quit();
  if (!hosts_may_go) return;
  // It stays until it is told to end: with it the connections end, and they are to hear this.
  const bool may_go_on = ended.outcome == protocol::job_outcome::interrupted;
  arguments_.hosts->dismiss(std::string{may_go_on ? "the job was stopped, and may go on" : job_over});
}

} // namespace dlrun::agent
