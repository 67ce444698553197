#include "actors/coordinator/coordinator.hpp"

#include "actors/common/action_handlers.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"
#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/coordinator/journal_copy.hpp"

#include <optional>
#include <random>
#include <unistd.h>

namespace dlrun::coordinator {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto agent_deadline = std::chrono::seconds(5);

bool is_durable(const common::job_facts& job) { return job.durability() != protocol::durability::off; }

coordinator_core_config core_config(const coordinator_context& context) {
  const auto& job = *context.job;
  coordinator_core_config config{.self = context.self.incarnation,
                                 .workers = job.workers(),
                                 .workers_max = job.workers_max(),
                                 .ps_shards = job.ps_shards(),
                                 .copies = job.copies(),
                                 .evaluates = job.spec.data().has_validation(),
                                 .relaxed = job::is_relaxed(job.spec),
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

/// Nothing: the agent has not said yet that who joins runs, or the job is over.
std::optional<protocol::join_reply> answer_in(const coordinator_actions& actions) {
  for (const auto& action : actions)
    if (const auto* answer = std::get_if<answer_join>(&action)) return answer->reply;
  return std::nullopt;
}

common::job_journal::writes with_stores(common::job_journal::writes changes,
                                        const std::vector<std::pair<ps_shard_id, known_store>>& stores) {
  auto more = to_writes(stores);
  changes.insert(changes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return changes;
}

} // namespace

coordinator_state::behavior coordinator_state::start(pointer self, coordinator_context context,
                                                     dispatcher_starter starter) {
  self->state.role.reset(new coordinator_state(self, std::move(context), std::move(starter)));
  auto* role = self->state.role.get();
  self->set_down_handler([role](const caf::down_msg& down) { role->on_dispatcher_down(down); });
  role->acquire();
  return role->make_behavior();
}

coordinator_state::coordinator_state(pointer self, coordinator_context context, dispatcher_starter starter)
    : self_{self}
    , context_{std::move(context)}
    , post_{self}
    , start_dispatcher_{std::move(starter)}
    , links_{self}
    , report_{context_}
    , report_sender_{self}
    , reports_{self, context_,
               [this] { return core_ ? std::optional(core_->dispatcher_incarnation()) : std::nullopt; }}
    , dispatcher_{self,
                  context_.job->spec.cluster().restart(),
                  {[this](const std::string& why) { return start_dispatcher(why); },
                   [this](const std::string& why) {
                     carry_out(core_->ending().fail(why, error_code::restart_budget_exceeded));
                   }}}
    , disk_{post_, [this](const auto& why) { reports_.tell_stalled(why); }} {}

coordinator_state::behavior coordinator_state::make_behavior() {
  return {
      [this](const protocol::join& join, const protocol::worker_actor& who) { return on_join(join, who); },
      [this](const protocol::join& join, const protocol::ps_shard_actor& who) { return on_join(join, who); },
      [this](const protocol::role_started& started) { carry_out(core_->on_role_started(started)); },
      [this](const protocol::role_exited& exited) { on_role_exited(exited); },
      [this](const protocol::stop_job& stop) { carry_out(core_->ending().on_stop(stop)); },
      [this](const protocol::scale_job& order) { carry_out(core_->on_scale(order)); },
      [this](const protocol::training_progress& progress) { on_progress(progress); },
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
      [this](const protocol::stall& what) { self_->send(context_.agent, what); },
      [this](const protocol::journal_part_wanted& wanted) {
        return disk_.journal() ? part_of_journal(disk_.journal()->entries(), wanted.offset)
                               : protocol::journal_part{"there is no journal yet", 0, 0, {}};
      },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- its start

void coordinator_state::acquire() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  if (!is_durable(*context_.job)) return enter({});
  disk_.open(context_.job, context_.self.incarnation, [this](const result<journaled_job>& journaled) {
    if (!journaled) return quit(journaled.error().message);
    report_.restore(disk_.journal());
    stores_ = store_book{read_stores(disk_.journal()->entries())};
    enter(*journaled);
  });
}

void coordinator_state::enter(const journaled_job& journaled) {
  core_.emplace(core_config(context_), journaled);
  on_published(common::publish<protocol::coordinator_actor>(self_, context_, {}));
}

void coordinator_state::on_published(const protocol::endpoint& at) {
  endpoint_ = at;
  dispatcher_.start();
  join_agent();
}

/// Again when the connection was lost: the agent tells all that may have been lost with it.
void coordinator_state::join_agent() {
  if (std::exchange(joining_, true)) return;
  const protocol::join message{
      context_.role, context_.self, ::getpid(), endpoint_, context_.job->build.fingerprint, context_.device};
  common::ask_with(
      self_, context_.agent, agent_deadline, message, caf::actor_cast<protocol::coordinator_actor>(self_),
      [this](const protocol::join_reply& reply) {
        joining_ = false;
        has_joined_ = reply.accepted;
        if (!reply.accepted) return quit(reply.reason);
        context_.log->info("joined: {} PS shards, {} workers, {} steps", context_.job->ps_shards(),
                           context_.job->workers(), context_.job->steps());
        carry_out(core_->on_agent(reply.agent));
      },
      [this](const caf::error& why) {
        joining_ = false;
        if (has_joined_) return;
        // One that is gone takes this process with it; one that is stopped answers when it goes on.
        if (why != caf::sec::request_timeout)
          return quit(fmt::format("the agent does not answer: {}", to_string(why)));
        context_.log->info("join-unanswered: trying again");
        join_agent();
      });
}

protocol::local_data_dispatcher_actor coordinator_state::start_dispatcher(const std::string& why) {
  const auto announce = core_->on_dispatcher_started(endpoint_);
  auto dispatcher = start_dispatcher_(core_->dispatcher_incarnation(),
                                      caf::actor_cast<protocol::coordinator_actor>(self_), disk_.journal());
  links_.follow(dispatcher);
  context_.log->info("dispatcher-started: incarnation {}: {}", core_->dispatcher_incarnation(), why);
  carry_out(announce);
  for (const auto& shard : core_->starts().available_ps_shards()) links_.send(shard);
  for (const auto& worker : core_->starts().available_workers()) links_.send(worker);
  return dispatcher;
}

void coordinator_state::on_dispatcher_down(const caf::down_msg& down) {
  if (disk_.is_broken()) return quit("the journal cannot be written");
  dispatcher_.on_down(down);
}

void coordinator_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- what others say

coordinator_state::join_answer coordinator_state::on_join(const protocol::join& join,
                                                          const member_links::member& who) {
  const auto actions = core_->on_join(join);
  const auto answer = answer_in(actions);
  if (!answer)
    return caf::make_error(caf::sec::runtime_error,
                           "not yet: the agent has not said that this one runs, or the job is over");
  auto reply = *answer;
  if (reply.accepted) {
    links_.admit(join.role, who);
    reply.store_is_short = is_store_short(join);
  } else {
    context_.log->warn("join-refused: {} incarnation {}: {}", protocol::to_string(join.role),
                       join.self.incarnation, reply.reason);
  }
  carry_out(actions);
  return {reply, links_.dispatcher()};
}

bool coordinator_state::is_store_short(const protocol::join& join) {
  const auto verdict = stores_.on_joined(join);
  if (verdict.news) reports_.tell(*verdict.news);
  return verdict.is_short;
}

void coordinator_state::on_progress(const protocol::training_progress& progress) {
  report_.add(progress);
  for (const auto& shard : progress.shards) stores_.on_status(shard);
}

void coordinator_state::on_role_exited(const protocol::role_exited& exited) {
  if (exited.again && report_.tallies().knows(exited)) return;
  context_.log->log(exited.left ? spdlog::level::info : spdlog::level::warn,
                    "role-exited: {} incarnation {}: {}{}", protocol::to_string(exited.role),
                    exited.self.incarnation, exited.left ? "has left: " : "", exited.cause);
  carry_out(core_->on_role_exited(exited, common::now()));
}

void coordinator_state::on_evaluated(const protocol::evaluated& result) {
  reports_.tell(result);
  carry_out(core_->ending().on_evaluated(result));
}

void coordinator_state::on_training_finished(const protocol::training_finished& what) {
  reports_.tell(what);
  carry_out(core_->ending().on_training_finished(what.timeline, what.version));
}

void coordinator_state::on_redispatched(const protocol::slots_redispatched& what) {
  core_->recoveries().on_redispatched(what.lost, what.incarnation, protocol::duration{what.after_us});
  reports_.tell(what);
}

void coordinator_state::on_contributed(const protocol::worker_contributed& what) {
  const auto role = protocol::worker_role(what.what.worker);
  reports_.tell(what, core_->recoveries().on_resumed(role, what.what.incarnation, common::now()));
}

void coordinator_state::on_shard_resumed(const protocol::ps_shard_resumed& what) {
  const auto role = protocol::ps_shard_role(what.shard);
  reports_.tell(what, core_->recoveries().on_resumed(role, what.incarnation, common::now()));
}

void coordinator_state::on_timeline_started(const protocol::timeline_started& what) {
  report_.tallies().add_rewind(what, common::now());
  if (!what.on_purpose) core_->recoveries().on_steps_redone(what.steps_redone);
  reports_.tell(what);
}

void coordinator_state::on_divergence(const protocol::divergence& what) {
  const auto kept = disk_.journal() ? std::optional(restorable_everywhere(report_.shards())) : std::nullopt;
  carry_out(core_->ending().fail(describe(what, *context_.job, kept), error_code::diverged));
}

void coordinator_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  if (!core_) return reports_.report_alive();
  dispatcher_.on_tick();
  carry_out(core_->on_tick(common::now()));
  if (disk_.is_broken()) return quit("the journal cannot be written");
  if (disk_.has_room()) write_lazily();
  reports_.report_alive([this] { join_agent(); });
}

/// What nobody waits for: the report needs it, or who finds a store short.
void coordinator_state::write_lazily() {
  const auto now = common::now();
  disk_.write_lazily(with_stores(report_.changes(*core_, now), stores_.to_journal(now)));
}

// ---- what the core decided

void coordinator_state::carry_out(const coordinator_actions& actions) {
  for (const auto& action : actions) carry_out(action);
}

void coordinator_state::carry_out(const coordinator_action& action) {
  std::visit(common::action_handlers{
                 [this](const send_grant& one) { self_->send(context_.agent, one.grant); },
                 [this](const send_directory& one) { links_.send(one.directory); },
                 [](const answer_join&) {}, // on_join() returns it
                 [this](const protocol::worker_available& one) { links_.send(one); },
                 [this](const protocol::worker_gone& one) { links_.tell_dispatcher(one); },
                 [this](const protocol::ps_shard_available& one) { links_.send(one); },
                 [this](const protocol::ps_shard_gone& one) { links_.tell_dispatcher(one); },
                 [this](const slot_suspected& one) { reports_.tell(one); },
                 [this](const protocol::poisoned_slot& one) {
                   links_.tell_dispatcher(one);
                   reports_.tell(one);
                 },
                 [this](const journal_fences& order) {
                   auto writes = to_writes(order);
                   if (const auto& older = order.older)
                     writes.push_back(report_.tallies().add_journal_loss(older->role, older->start,
                                                                         older->known, common::now()));
                   journal_then(std::move(writes),
                                [this, id = order.id] { return core_->on_fences_journaled(id); });
                 },
                 [this](const journal_is_older& one) { reports_.tell(one); },
                 [this](const restart_dispatcher&) { links_.end_dispatcher(); },
                 [this](const journal_workers& order) {
                   journal_then(to_writes(order),
                                [this, what = order.what] { return core_->on_workers_journaled(what); });
                 },
                 [this](const send_start_over& one) { self_->send(context_.agent, one.message); },
                 [this](const send_workers_wanted& one) { say(one.message); },
                 [this](const journal_end& order) {
                   journal_then(with_stores(to_writes(order, report_text_), stores_.to_journal(std::nullopt)),
                                [this] { return core_->ending().on_end_journaled(); });
                 },
                 [this](const request_digests& order) { ask(order); },
                 [this](const protocol::close_training& one) { links_.tell_dispatcher(one); },
                 [this](const finish_job& order) { finish(order); },
                 [this](const announce_end& end) { reports_.tell(end); }},
             action);
}

void coordinator_state::ask(const request_digests& order) {
  links_.ask(
      order,
      [this, shard = order.shard](const protocol::digest_reply& reply) {
        carry_out(core_->ending().on_digests(shard, reply));
      },
      [this, shard = order.shard](const std::string& why) {
        context_.log->warn("digests-unanswered: ps_shard {}: {}", shard, why);
      });
}

/// Nobody waits for this actor any more, so it may wait for the disk. Of a job that is to go on
/// later no end was journaled, and so not what its stores have; nor what its report says.
void coordinator_state::finish(const finish_job& order) {
  const auto now = common::now();
  if (disk_.has_room())
    disk_.write_lazily(with_stores(report_.last_changes(*core_, now), stores_.to_journal(std::nullopt)));
  hand_over_report(report_.write(order.ended, *core_, stores_.losses(), now));
}

void coordinator_state::hand_over_report(const report_writer::written& written) {
  report_text_ = written.text;
  if (written.text.empty()) return carry_out(core_->ending().on_report_written(written.ended));
  report_sender_.send(
      context_.agent, context_.self.incarnation, written.text,
      [this, ended = written.ended](const std::string& failure) {
        carry_out(core_->ending().on_report_written(
            failure.empty() ? ended : protocol::job_ended{protocol::job_outcome::failed, failure}));
      });
}

void coordinator_state::say(const protocol::workers_wanted& word) {
  self_->send(context_.agent, word);
  links_.tell_dispatcher(word);
}

void coordinator_state::journal_then(common::job_journal::writes changes,
                                     std::function<coordinator_actions()> next) {
  disk_.write(std::move(changes), [this, next = std::move(next)](const result<void>& written) {
    if (!written) return quit(written.error().message);
    carry_out(next());
  });
}

} // namespace dlrun::coordinator
