#include "actors/coordinator/coordinator.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"
#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/coordinator/job_report.hpp"

#include <dlrun/check.hpp>

#include <random>
#include <unistd.h>

namespace dlrun::coordinator {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto agent_deadline = std::chrono::seconds(5);
constexpr auto digest_deadline = std::chrono::seconds(10);
constexpr auto dispatcher_id = "data_dispatcher";

bool is_durable(const common::job_context& job) { return job.durability() != protocol::durability::off; }

/// R20: PS shards have written something, which they do after their fences were journaled.
bool has_lost_journal(const journaled_job& journaled, const std::filesystem::path& run_dir) {
  std::error_code ignored;
  return journaled.roles.empty() && std::filesystem::exists(run_dir / "ps_shard-0", ignored);
}

coordinator_core_config core_config(const common::role_context& context) {
  const auto& job = *context.job;
  coordinator_core_config config{.self = context.self.incarnation,
                                 .workers = job.workers(),
                                 .ps_shards = job.ps_shards(),
                                 .evaluates = job.spec.data().has_validation(),
                                 .steps = job.steps(),
                                 .token = context.self.token,
                                 .is_durable = is_durable(job),
                                 .agent = job.agent_process};
  for (const auto& range : job.shards)
    config.blocks_of_shard.emplace_back(range.first_block, range.last_block);
  config.random = [device = std::make_shared<std::random_device>()] {
    return (std::uint64_t{(*device)()} << 32) | (*device)();
  };
  return config;
}

/// What all PS shards can go back to.
protocol::version_set restorable_everywhere(const std::vector<protocol::shard_status>& shards) {
  protocol::version_set all = shards.empty() ? protocol::version_set{} : shards.front().durable.restorable;
  for (const auto& shard : shards) all = protocol::common(all, shard.durable.restorable);
  return all;
}

supervision::supervisor make_supervisor(const common::role_context& context) {
  const auto& restart = context.job->spec.cluster().restart();
  supervision::supervisor_options options;
  options.intensity = static_cast<std::size_t>(restart.intensity());
  options.period = std::chrono::milliseconds(static_cast<std::int64_t>(restart.period_s() * 1000));
  auto made = supervision::supervisor::create(options, {{.id = dispatcher_id}});
  DLRUN_CHECK(made.has_value(), "the validated spec makes a valid supervisor");
  return std::move(*made);
}

} // namespace

coordinator_state::behavior coordinator_state::start(pointer self, common::role_context context,
                                                     dispatcher_starter starter) {
  self->state.role.reset(new coordinator_state(self, std::move(context), std::move(starter)));
  auto* role = self->state.role.get();
  self->set_down_handler([role](const caf::down_msg& down) { role->on_dispatcher_down(down); });
  if (is_durable(*role->context_.job))
    role->open_journal();
  else
    role->enter({});
  return role->make_behavior();
}

void coordinator_state::on_dispatcher_down(const caf::down_msg& down) {
  if (caf::actor_cast<caf::actor_addr>(dispatcher_) != down.source) return;
  if (journal_ && journal_->is_broken()) return quit("the journal cannot be written");
  const auto how = supervision::child_exit{supervision::exit_reason::abnormal, to_string(down.reason)};
  carry_out(dispatchers_.child_exited(dispatcher_id, dispatcher_generation_, how, common::now()));
}

// ---- the journal
// -----------------------------------------------------------------------------------------------

void coordinator_state::open_journal() {
  const auto post = common::poster<protocol::coordinator_actor>{self_};
  journal_opener_.run([this, post, job = context_.job, owner = context_.self.incarnation,
                       watcher = disk_watcher()] {
    const auto opened = common::job_journal::open(job->run_dir, owner, watcher);
    auto journaled = opened ? read_job((*opened)->entries()) : tl::unexpected(opened.error());
    if (journaled && has_lost_journal(*journaled, job->run_dir)) {
      journaled->lost = true;
      journaled->highest_found = highest_opener(job->run_dir, job->ps_shards());
    }
    post([this, journal = opened.value_or(nullptr), journaled] { on_journal_opened(journal, journaled); });
  });
}

/// For the journal, which may outlive this actor by the time its dispatcher takes to end.
common::full_disk_watcher coordinator_state::disk_watcher() {
  const auto post = common::poster<protocol::coordinator_actor>{self_};
  return {[this, post, waits = waits_for_disk_](const error& why) {
            post([this, why] { on_disk_full(why); });
            return waits->load();
          },
          [this, post] { post([this] { on_disk_ok(); }); }};
}

/// Training goes on as far as nothing new has to be decided.
void coordinator_state::on_disk_full(const error& why) {
  if (!std::exchange(disk_is_full_, true)) tell_disk("disk-full", "waits: " + why.message);
  if (!core_) report_alive(); // afterwards at each tick
}

void coordinator_state::on_disk_ok() {
  if (std::exchange(disk_is_full_, false)) tell_disk("disk-ok", "goes on: the disk takes its journal again");
}

void coordinator_state::tell_disk(std::string event, const std::string& text) {
  tell_user(std::move(event), context_.role, context_.self.incarnation, "the coordinator " + text);
}

void coordinator_state::on_journal_opened(std::shared_ptr<common::job_journal> journal,
                                          const result<journaled_job>& journaled) {
  journal_ = std::move(journal);
  if (!journaled) return quit(journaled.error().message);
  record_ = run_record{journal_->entries(), context_.job->started, context_.self.incarnation};
  enter(*journaled);
}

void coordinator_state::enter(journaled_job journaled) {
  core_.emplace(core_config(context_), std::move(journaled));
  common::publish<protocol::coordinator_actor>(self_, context_, {},
                                               [this](const protocol::endpoint& at) { on_published(at); });
}

void coordinator_state::journal_then(common::job_journal::writes changes,
                                     std::function<coordinator_actions()> next) {
  const auto post = common::poster<protocol::coordinator_actor>{self_};
  journal_->write(std::move(changes), [this, post, next = std::move(next)](const result<void>& written) {
    post([this, next, written] {
      if (!written) return quit(written.error().message);
      carry_out(next());
    });
  });
}

void coordinator_state::carry_out(const journal_fences& action) {
  journal_then(to_writes(action), [this, id = action.id] { return core_->on_fences_journaled(id); });
}

void coordinator_state::carry_out(const journal_end& action) {
  journal_then(to_writes(action), [this] { return core_->ending().on_end_journaled(); });
}

/// What the report needs and no actor depends on: it is written now and then, and nobody waits for
/// it.
void coordinator_state::keep_record() {
  if (!journal_ || disk_is_full_) return;
  auto changes = record_.changes(core_->recoveries().all(), common::now());
  if (!changes.empty()) journal_->write(std::move(changes), [](const result<void>&) {});
}

coordinator_state::coordinator_state(pointer self, common::role_context context, dispatcher_starter starter)
    : self_{self}
    , context_{std::move(context)}
    , start_dispatcher_{std::move(starter)}
    , dispatchers_{make_supervisor(context_)} {}

coordinator_state::behavior coordinator_state::make_behavior() {
  return {
      [this](const protocol::join& join, const protocol::worker_actor& who) { return on_join(join, who); },
      [this](const protocol::join& join, const protocol::ps_shard_actor& who) { return on_join(join, who); },
      [this](const protocol::role_started& started) { carry_out(core_->on_role_started(started)); },
      [this](const protocol::role_exited& exited) { on_role_exited(exited); },
      [this](const protocol::stop_job& stop) { on_stop(stop); },
      [this](const protocol::training_progress& progress) {
        progress_ = progress;
        record_.add_tallies(progress.tallies);
      },
      [this](const protocol::training_finished& what) { on_training_finished(what); },
      [this](const protocol::training_closed& what) {
        carry_out(core_->ending().on_training_closed(what.timeline));
      },
      [this](const protocol::evaluated& result) { on_evaluated(result); },
      [this](const protocol::slots_redispatched& what) { on_redispatched(what); },
      [this](const protocol::worker_contributed& what) { on_contributed(what); },
      [this](const protocol::ps_shard_resumed& what) { on_shard_resumed(what); },
      [this](const protocol::timeline_started& what) { on_timeline_started(what); },
      [this](const protocol::divergence& what) { on_divergence(what); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- start
// -------------------------------------------------------------------------------------------------------------

void coordinator_state::on_published(const protocol::endpoint& at) {
  endpoint_ = at;
  carry_out(dispatchers_.start(common::now()));
  join_agent();
  self_->delayed_send(self_, tick_period, protocol::tick{});
}

void coordinator_state::join_agent() {
  const protocol::join message{context_.role, context_.self, ::getpid(), endpoint_,
                               context_.job->fingerprint};
  common::ask_with(
      self_, context_.agent, agent_deadline, message, caf::actor_cast<protocol::coordinator_actor>(self_),
      [this](const protocol::join_reply& reply) {
        if (!reply.accepted) return quit(reply.reason);
        context_.log->info("joined: {} PS shards, {} workers, {} steps", context_.job->ps_shards(),
                           context_.job->workers(), context_.job->steps());
        carry_out(core_->on_agent());
      },
      [this](const caf::error& why) { quit(fmt::format("the agent does not answer: {}", to_string(why))); });
}

void coordinator_state::carry_out(const supervision::actions& actions) {
  for (const auto& action : actions) {
    if (const auto* order = std::get_if<supervision::start_child>(&action))
      start_dispatcher(*order);
    else if (const auto* end = std::get_if<supervision::escalate>(&action))
      carry_out(core_->ending().fail(end->reason, error_code::restart_budget_exceeded));
  }
}

void coordinator_state::start_dispatcher(const supervision::start_child& order) {
  dispatcher_generation_ = order.number;
  auto announce = core_->on_dispatcher_started(endpoint_);
  dispatcher_ = start_dispatcher_(core_->dispatcher_incarnation(),
                                  caf::actor_cast<protocol::coordinator_actor>(self_), journal_);
  self_->monitor(dispatcher_);
  context_.log->info("dispatcher-started: incarnation {}: {}", core_->dispatcher_incarnation(), order.reason);
  carry_out(announce);
  for (const auto& shard : core_->starts().available_ps_shards()) carry_out(shard);
  for (const auto& worker : core_->starts().available_workers()) carry_out(worker);
  carry_out(dispatchers_.child_started(dispatcher_id, order.number, common::now()));
}

void coordinator_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- messages
// ----------------------------------------------------------------------------------------------------------

coordinator_state::join_answer coordinator_state::on_join(const protocol::join& join, member who) {
  const auto before = members_[join.role];
  members_[join.role] = std::move(who);
  join_reply_.reset();
  carry_out(core_->on_join(join));
  DLRUN_CHECK(join_reply_.has_value(), "the core answers every join");
  if (!join_reply_->accepted) {
    members_[join.role] = before;
    context_.log->warn("join-refused: {} incarnation {}: {}", protocol::to_string(join.role),
                       join.self.incarnation, join_reply_->reason);
  }
  return {*join_reply_, caf::actor_cast<protocol::data_dispatcher_actor>(dispatcher_)};
}

void coordinator_state::on_role_exited(const protocol::role_exited& exited) {
  if (exited.again && record_.knows(exited)) return;
  context_.log->warn("role-exited: {} incarnation {}: {}", protocol::to_string(exited.role),
                     exited.self.incarnation, exited.cause);
  carry_out(core_->on_role_exited(exited, common::now()));
}

void coordinator_state::on_stop(const protocol::stop_job& stop) { carry_out(core_->ending().on_stop(stop)); }

void coordinator_state::on_timeline_started(const protocol::timeline_started& what) {
  record_.add_rewind(what, common::now());
  if (!what.on_purpose) core_->recoveries().on_steps_redone(what.steps_redone);
  tell_user("rewind", {protocol::role_kind::data_dispatcher, 0}, core_->dispatcher_incarnation(),
            fmt::format("everybody goes back to version {} on timeline {}, {} steps are done again: {}",
                        what.branch, what.timeline, what.steps_redone, what.reason),
            {.has_step = true, .step = what.branch.value});
}

void coordinator_state::on_divergence(const protocol::divergence& what) {
  const auto where = what.has_slot ? fmt::format("step {}, slot {}", what.step, what.slot)
                                   : fmt::format("step {}", what.step);
  const auto resume = fmt::format("dlrun resume {}", context_.job->run_dir.string());
  const auto without =
      what.has_slot ? fmt::format(", or without the records, '{} --skip {}:{}'", resume, what.step, what.slot)
                    : std::string{};
  const auto way_out =
      journal_ ? fmt::format("kept are at least the versions {}: go on from before it went wrong, '{} "
                             "--from STEP --set train.optimizer...'{}",
                             protocol::to_string(restorable_everywhere(progress_.shards)), resume, without)
               : std::string{"nothing was kept, since durability.log is off"};
  carry_out(core_->ending().fail(
      fmt::format("the training diverged at {}: {}; {}", where, what.text, way_out), error_code::diverged));
}

void coordinator_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(dispatchers_.tick(common::now()));
  carry_out(core_->on_tick(common::now()));
  keep_record();
  report_alive();
}

// ---- what the core decided
// ---------------------------------------------------------------------------------------------

void coordinator_state::carry_out(const coordinator_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

void coordinator_state::carry_out(const send_grant& action) { self_->send(context_.agent, action.grant); }

void coordinator_state::carry_out(const send_directory& action) {
  const auto dispatcher = caf::actor_cast<protocol::data_dispatcher_actor>(dispatcher_);
  for (const auto& [role, handle] : members_) {
    if (const auto* worker = std::get_if<protocol::worker_actor>(&handle))
      self_->send(*worker, action.directory, dispatcher);
    else if (const auto* shard = std::get_if<protocol::ps_shard_actor>(&handle))
      self_->send(*shard, action.directory, dispatcher);
  }
}

void coordinator_state::carry_out(const answer_join& action) { join_reply_ = action.reply; }

void coordinator_state::carry_out(const protocol::worker_available& action) {
  if (const auto* handle =
          std::get_if<protocol::worker_actor>(&members_[protocol::worker_role(action.worker)]))
    self_->send(dispatcher_, action, *handle);
}

void coordinator_state::carry_out(const protocol::worker_gone& action) { self_->send(dispatcher_, action); }

void coordinator_state::carry_out(const protocol::ps_shard_available& action) {
  if (const auto* handle =
          std::get_if<protocol::ps_shard_actor>(&members_[protocol::ps_shard_role(action.shard)]))
    self_->send(dispatcher_, action, *handle);
}

void coordinator_state::carry_out(const protocol::ps_shard_gone& action) { self_->send(dispatcher_, action); }

void coordinator_state::carry_out(const slot_suspected& action) {
  const auto& [step, slot, together] = action.what;
  tell_user(
      "slot-suspected", context_.role, context_.self.incarnation,
      together
          ? fmt::format("workers die in slot {} of step {}, and of none of its records alone: ever "
                        "more of them are tried together",
                        slot, step)
          : fmt::format("workers die in slot {} of step {}: its records are tried one by one", slot, step),
      {.has_step = true, .step = step.value});
}

void coordinator_state::carry_out(const protocol::poisoned_slot& action) {
  self_->send(dispatcher_, action);
  if (!poison_told_.insert(action.what).second) return; // of a dispatcher that starts anew
  const auto numbers = numbers_in_files(*context_.job, action.what);
  tell_user("record-parked", context_.role, context_.self.incarnation,
            fmt::format("{}{} ends its workers and is left out of the training",
                        protocol::describe(action.what),
                        numbers.empty() ? "" : fmt::format(" (number {} in its files)", numbers.front())),
            {.has_step = true, .step = action.what.step.value});
}

void coordinator_state::carry_out(const request_digests& action) {
  const auto* handle =
      std::get_if<protocol::ps_shard_actor>(&members_[protocol::ps_shard_role(action.shard)]);
  if (!handle) return; // asked again on a tick
  common::ask(
      self_, *handle, digest_deadline, action.request,
      [this, shard = action.shard](const protocol::digest_reply& reply) {
        carry_out(core_->ending().on_digests(shard, reply));
      },
      [this, shard = action.shard](const caf::error& why) {
        context_.log->warn("digests-unanswered: ps_shard {}: {}", shard, to_string(why));
      });
}

void coordinator_state::carry_out(const protocol::close_training& action) {
  self_->send(dispatcher_, action);
}

/// Nobody waits for this actor any more, so it may wait for the disk.
void coordinator_state::carry_out(const finish_job& action) {
  report_sources sources{action.ended,
                         progress_.shards,
                         evaluations(),
                         core_->ending().last_version(),
                         core_->ending().digests(),
                         core_->recoveries().all(),
                         record_,
                         journal_ ? read_parked(journal_->entries()) : std::vector<protocol::parked_slot>{}};
  sources.ended = judged(*context_.job, sources);
  auto ended = sources.ended;
  if (const auto written = dlrun::write_report(context_.job->run_dir / "report.json",
                                               make_report(*context_.job, sources, common::now()));
      !written) {
    context_.log->error("report-failed: {}", written.error().message);
    ended = {protocol::job_outcome::failed, written.error().message, written.error().code};
  }
  carry_out(core_->ending().on_report_written(ended));
}

void coordinator_state::carry_out(const announce_end& action) {
  if (!std::exchange(ended_, true))
    context_.log->info("job-ended: {}",
                       action.ended.reason.empty() ? "all data trained" : action.ended.reason);
  self_->send(context_.agent, action.ended);
}

void coordinator_state::report_alive() {
  const auto* const state = ended_ ? "done" : disk_is_full_ ? "disk-full" : "coordinating";
  const protocol::heartbeat beat{.role = context_.role, .self = context_.self, .state = state};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(self_, context_.agent, beat,
                                                                    [](const auto&) {});
  if (!core_) return; // there is no dispatcher yet
  const protocol::heartbeat dispatcher{.role = {protocol::role_kind::data_dispatcher, 0},
                                       .self = {core_->dispatcher_incarnation(), 0},
                                       .state = ended_ ? "done" : "dispatching"};
  dispatcher_heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, dispatcher, [](const auto&) {});
}

void coordinator_state::tell_user(std::string event, const protocol::role_name& role,
                                  dlrun::incarnation incarnation, std::string text,
                                  protocol::event_numbers numbers) {
  context_.log->info("{}: {}", event, text);
  self_->send(context_.agent,
              protocol::job_event{std::move(event), role, incarnation, common::to_us(common::now()),
                                  std::move(text), std::move(numbers)});
}

} // namespace dlrun::coordinator
