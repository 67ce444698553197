#include "actors/agent/host_agent.hpp"

#include "actors/agent/log_files.hpp"
#include "actors/agent/posted_events.hpp"
#include "actors/agent/snapshot_pins.hpp"
#include "actors/agent/store_files.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/history_conversion.hpp"

#include <unistd.h>
#include <utility>

namespace dlrun::agent {
namespace {

constexpr auto host_tick_period = std::chrono::milliseconds(100);
constexpr auto join_deadline = std::chrono::seconds(2);
/// At a time: more than the root asks for, which is 64 logs for who reads them, 8 parts of stores
/// and as many of logs at the end, and one of an archive, each up to 3 times.
constexpr std::size_t reads_max = 256;

} // namespace

host_agent_state::behavior host_agent_state::start(pointer self, host_agent_arguments arguments) {
  self->state.role.reset(new host_agent_state(self, std::move(arguments)));
  auto* role = self->state.role.get();
  drop_kept_snapshots(role->arguments_.folder);
  self->set_down_handler([role](const caf::down_msg& down) { role->lose_link(to_string(down.reason)); });
  if (const auto begun = role->begin_beats(); !begun) {
    role->carry_out(leave{begun.error().message});
    return role->make_behavior();
  }
  role->dial();
  self->delayed_send(self, host_tick_period, protocol::tick{});
  return role->make_behavior();
}

host_agent_state::host_agent_state(pointer self, host_agent_arguments arguments)
    : self_{self}
    , arguments_{std::move(arguments)}
    , core_{arguments_.core, arguments_.now()} {}

host_agent_state::behavior host_agent_state::make_behavior() {
  return {
      [this](const protocol::start_order& order) {
        carry_out(core_.on_start_order(order, arguments_.now()));
      },
      [this](const protocol::stop_order& order) { carry_out(core_.on_stop_order(order)); },
      [this](const protocol::start_told& told) { core_.on_start_told(told); },
      [this](const protocol::store_listing_wanted& wanted) { return on_listing_wanted(wanted); },
      [this](const protocol::store_part_wanted& wanted) { return on_part_wanted(wanted); },
      [this](const protocol::log_listing_wanted&) { return on_log_listing_wanted(); },
      [this](const protocol::log_part_wanted& wanted) { return on_log_part_wanted(wanted); },
      [this](const protocol::snapshots_wanted& wanted) { return on_snapshots_wanted(wanted); },
      [this](const protocol::snapshot_part_wanted& wanted) { return on_snapshot_part_wanted(wanted); },
      [this](const protocol::dismissal& dismissal) { carry_out(core_.on_dismissal(dismissal)); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

void host_agent_state::on_tick() {
  self_->delayed_send(self_, host_tick_period, protocol::tick{});
  arguments_.beats->note_turn();
  turning_.turn();
  if (arguments_.has_notice()) carry_out(core_.on_notice(arguments_.now()));
  if (core_.has_leave_to_tell() && !dialling_) join();
  carry_out(core_.on_tick(arguments_.now()));
  const auto seen = arguments_.launcher->look();
  if (core_.has_link())
    self_->send(agent_, core_.work_report(seen, memory_.at(arguments_.now())));
  else if (!agent_)
    dial();
}

// ---- the link

void host_agent_state::dial() {
  if (std::exchange(dialling_, true)) return;
  arguments_.dial([this, post = common::poster<protocol::host_agent_actor>{self_}, dial = ++dials_](
                      const auto& found) { post([this, found, dial] { on_found(found, dial); }); });
}

void host_agent_state::on_found(const result<protocol::agent_actor>& found, std::uint64_t dial) {
  if (dial != dials_) return;
  if (!found) {
    dialling_ = false;
    arguments_.log->warn("link: {}", found.error().message);
    return;
  }
  agent_ = *found;
  self_->monitor(agent_);
  join();
}

/// It first looks at the stores, beside its other turns, since that may wait for who has one open.
/// What starts or ends meanwhile is told by a report of its own, which follows the answer of the
/// root.
void host_agent_state::join() {
  dialling_ = true;
  auto running = core_.running();
  if (!arguments_.stores) return tell_joined(std::move(running), {});
  reader_.run([this, look = arguments_.stores, running = std::move(running), dial = dials_,
               post = common::poster<protocol::host_agent_actor>{self_}] {
    post([this, running, stores = look(running), dial] {
      if (agent_ && dial == dials_) tell_joined(running, stores); // else that link is lost
    });
  });
}

/// With no cores once it is to leave.
void host_agent_state::tell_joined(std::vector<protocol::running_start> running,
                                   std::vector<protocol::held_store> stores) {
  const protocol::host_joined here{.host = arguments_.core.host,
                                   .boot = arguments_.core.boot,
                                   .pid = static_cast<std::int32_t>(::getpid()),
                                   .cpus = core_.is_leaving() ? 0 : arguments_.cpus,
                                   .stores = std::move(stores),
                                   .root = arguments_.started_by,
                                   .running = std::move(running),
                                   .data_at = arguments_.data_at,
                                   .intake = arguments_.intake,
                                   .gpus = arguments_.gpus,
                                   .preemptible = arguments_.preemptible,
                                   .takes = arguments_.takes,
                                   .machine = arguments_.machine};
  common::ask_with(
      self_, agent_, join_deadline, here, protocol::host_agent_actor{self_},
      [this, leaving = core_.is_leaving()](const protocol::join_reply& reply) {
        on_join_reply(reply, leaving);
      },
      [this](const caf::error& why) {
        if (agent_) self_->demonitor(agent_.address());
        lose_link(to_string(why));
      });
}

void host_agent_state::on_join_reply(const protocol::join_reply& reply, bool said_leaving) {
  dialling_ = false;
  if (!reply.accepted) return carry_out(leave{"refused: " + reply.reason});
  if (!agent_) return; // lost again meanwhile
  arguments_.log->info("joined: host {} {}", arguments_.core.host,
                       said_leaving ? "is to leave, which the root knows" : "is one of the job's");
  arguments_.pulse->set_ready(true);
  carry_out(core_.on_link(arguments_.now(), reply.agent, said_leaving));
}

void host_agent_state::lose_link(const std::string& why) {
  dialling_ = false;
  if (!std::exchange(agent_, nullptr)) return;
  arguments_.log->warn("link-lost: {}", why);
  core_.on_link_lost(arguments_.now());
}

// ---- files of roles here: the disk may be slow, and beats go on

/// One after the other, in the order in which they are asked for. Nothing here removes or changes a
/// store; the root asks for one only when none of its roles has it open. `read` returns what the
/// Answer has beside the reason of a failure.
template <class Answer, class Read>
caf::result<Answer> host_agent_state::read_files(Read read) {
  if (reads_ == reads_max) return Answer{"it is asked for too many files at a time", {}};
  ++reads_;
  auto promise = self_->make_response_promise<Answer>();
  reader_.run(
      [this, read = std::move(read), promise, post = common::poster<protocol::host_agent_actor>{self_}] {
        auto had = read();
        auto answer =
            std::make_shared<Answer>(had ? Answer{{}, std::move(*had)} : Answer{had.error().message, {}});
        post([this, promise, answer]() mutable {
          --reads_;
          promise.deliver(std::move(*answer));
        });
      });
  return promise;
}

caf::result<protocol::store_listing>
host_agent_state::on_listing_wanted(const protocol::store_listing_wanted& wanted) {
  return read_files<protocol::store_listing>(
      [store = common::store_directory(arguments_.folder, wanted.shard)] { return list_store(store); });
}

caf::result<protocol::store_part>
host_agent_state::on_part_wanted(const protocol::store_part_wanted& wanted) {
  return read_files<protocol::store_part>([store = common::store_directory(arguments_.folder, wanted.shard),
                                           wanted] { return read_store_part(store, wanted); });
}

caf::result<protocol::log_listing> host_agent_state::on_log_listing_wanted() {
  return read_files<protocol::log_listing>([folder = arguments_.folder] { return list_logs(folder); });
}

caf::result<protocol::log_part>
host_agent_state::on_log_part_wanted(const protocol::log_part_wanted& wanted) {
  return read_files<protocol::log_part>(
      [folder = arguments_.folder, wanted] { return read_log_part(folder, wanted); });
}

caf::result<protocol::store_listing>
host_agent_state::on_snapshots_wanted(const protocol::snapshots_wanted& wanted) {
  return read_files<protocol::store_listing>(
      [store = common::store_directory(arguments_.folder, wanted.shard), wanted] {
        return keep_snapshots(store, wanted.kept);
      });
}

caf::result<protocol::store_part>
host_agent_state::on_snapshot_part_wanted(const protocol::snapshot_part_wanted& wanted) {
  return read_files<protocol::store_part>(
      [store = common::store_directory(arguments_.folder, wanted.shard), wanted] {
        return read_kept_snapshot(store, wanted.file, wanted.offset, wanted.size);
      });
}

// ---- beats

result<void> host_agent_state::begin_beats() {
  return arguments_.beats->watch(arguments_.root,
                                 [this, post = common::poster<protocol::host_agent_actor>{self_}](
                                     const sighting& seen) { post([this, seen] { on_sighting(seen); }); });
}

/// R39. A link that is there is to an older root, but for the first call: that is of the root that
/// it was told of.
void host_agent_state::look_where(const std::string& at) {
  const bool was_known = arguments_.place && arguments_.place->number() != 0;
  if (!arguments_.place || !arguments_.place->move_to(at)) return;
  arguments_.log->warn("root-moved: it calls from {}", at);
  if (agent_ && was_known) arguments_.leave_root(); // and is dialled when that is lost
  if (agent_) return;
  dialling_ = false; // of a try where it was
  dial();
}

void host_agent_state::on_sighting(const sighting& seen) {
  look_where(seen.at);
  if (seen.seen == sight::there)
    arguments_.log->info("root-there: it answers beats");
  else
    arguments_.log->warn("root-silent: it {}", seen.seen == sight::hangs
                                                   ? "answers beats, but does nothing else"
                                                   : fmt::format("has answered no beat for {:.2f} s",
                                                                 protocol::to_seconds(seen.silence)));
  core_.on_sighting(seen, arguments_.now());
}

// ---- what the core decided

void host_agent_state::carry_out(const host_agent_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

launch_events host_agent_state::make_launch_events() {
  return posted_events(common::poster<protocol::host_agent_actor>{self_}, core_, arguments_.now,
                       [this](const host_agent_actions& actions) { carry_out(actions); });
}

void host_agent_state::carry_out(const launch_role& action) {
  const auto& wanted = action.order;
  std::optional<protocol::join> coordinator;
  if (wanted.role.kind != protocol::role_kind::coordinator)
    coordinator = {.role = {protocol::role_kind::coordinator, 0},
                   .self = {wanted.coordinator, 0},
                   .at = wanted.coordinator_at,
                   .fingerprint = {}};
  arguments_.launcher->start(
      {wanted.role, wanted.self, std::move(coordinator), wanted.credentials, wanted.agent},
      make_launch_events());
}

void host_agent_state::carry_out(const end_role& action) {
  arguments_.launcher->stop(action.role, action.self, action.how);
}

void host_agent_state::carry_out(const tell_agent& action) { self_->send(agent_, action.report); }

void host_agent_state::carry_out(const leave& action) {
  arguments_.log->info("leaves: {}", action.reason);
  arguments_.leaves(action);
  if (action.kind != leave_kind::lost) return self_->quit();
  self_->quit(caf::make_error(caf::sec::runtime_error, action.reason));
}

} // namespace dlrun::agent
