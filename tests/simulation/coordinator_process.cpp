#include "tests/simulation/coordinator_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "tests/simulation/root_process.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

using protocol::ps_shard_role;

coordinator::coordinator_core_config coordinator_config(world& where, protocol::fence self,
                                                        std::uint64_t agent) {
  coordinator::coordinator_core_config config;
  config.self = self.incarnation;
  config.token = self.token;
  config.workers = where.plan().workers;
  config.workers_max = where.plan().workers_max;
  config.bug = where.bug();
  config.ps_shards = where.job().ps_shards;
  config.evaluates = where.plan().evaluates;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard)
    config.blocks_of_shard.emplace_back(shard, shard + 1); // one each
  config.steps = where.job().steps;
  config.repeat_after = where.plan().period * 2;
  config.is_durable = where.plan().is_durable();
  config.agent = agent;
  config.random = [&where] { return where.random().next(); };
  return config;
}

coordinator::journaled_job journaled(world& where, const coordinator_journal& journal) {
  coordinator::journaled_job job;
  for (const auto& [role, kept] : journal.roles) job.roles.push_back(kept);
  job.ended = journal.ended;
  job.workers = journal.workers;
  job.lost = journal.fences_are_lost;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard)
    job.highest_found = std::max(job.highest_found, where.disk_of({shard}).opened_by);
  job.evaluations = journal.course.evaluations;
  return job;
}

protocol::duration journal_delay(world& where) {
  return protocol::duration(
      static_cast<std::int64_t>(1000 * where.random().between(0.2, 1) * where.plan().journal_ms));
}

/// R41: it says so of its journal.
void expect_older(world& where, process& which, const coordinator::journal_is_older& what) {
  const auto role = protocol::to_string(what.role);
  where.say(&which, "finds its journal older than {} incarnation {}", role, what.start);
  if (!where.happened().journal_lost)
    broken("R41", "the journal is called older than {} incarnation {}, and is not", role, what.start);
}

/// R28: compares the term and the write before.
bool may_write(world& where, incarnation term, std::uint64_t last_write) {
  const auto& journal = where.journal();
  const bool is_own = journal.owner == term && journal.last_write == last_write;
  return is_own || where.is_planted(protocol::planted_bug::no_term);
}

/// @returns false, and `which` dies, when a newer start has the journal.
bool take(world& where, process& which, std::uint64_t& last_write) {
  auto& journal = where.journal();
  if (journal.owner >= which.self().incarnation) {
    where.kill(which, "its journal is opened by a newer start");
    return false;
  }
  journal.owner = which.self().incarnation;
  last_write = ++journal.last_write;
  return true;
}

/// A write whose answer does not come: done, not done, or done later.
void lose_answer(world& where, process& which, std::uint64_t last_write,
                 std::function<void(coordinator_journal&)> change) {
  const auto apply = [&where, term = which.self().incarnation, last_write, change = std::move(change)] {
    if (!may_write(where, term, last_write)) return;
    ++where.journal().last_write;
    change(where.journal());
  };
  const auto outcome = where.random().below(3);
  if (outcome == 0) apply();
  if (outcome == 1) where.after(where.random().milliseconds(1, 100), nullptr, apply);
  where.kill(which, "its journal does not answer");
}

} // namespace

coordinator_process::coordinator_process(world& where, protocol::fence self, std::uint64_t agent,
                                         std::uint32_t host)
    : process(where, {protocol::role_kind::coordinator, 0}, self, host)
    , agent_(agent) {}

void coordinator_process::start() {
  if (world_.plan().hosts.are_several()) every(world_.plan().period, [this] { tell_agent(); });
  if (world_.plan().journal_is_remote) return take_then_read();
  if (!take(world_, *this, last_write_)) return;
  found_ = world_.journal();
  begin();
}

void coordinator_process::tell_agent() {
  const auto* state = waits_for_journal_ ? "no-journal" : is_up() ? "running" : "starting";
  send(agent_role, protocol::heartbeat{role(), self(), state});
  for (const auto* one : world_.living(agent_role)) {
    const bool is_another = one->self().incarnation.value != agent_; // its connection knows nothing of it
    if (is_another || static_cast<const root_process*>(one)->lacks_coordinator()) agent_knows_ = false;
  }
  if (is_up() && !agent_knows_) send(agent_role, protocol::join{role(), self(), 1, endpoint(), {}});
}

void coordinator_process::take_then_read() {
  waits_for_journal_ = !world_.hosts().has_journal(host());
  if (waits_for_journal_) return after(world_.plan().period, [this] { take_then_read(); });
  const bool reads_first = world_.is_planted(protocol::planted_bug::stale_reader);
  after(journal_delay(world_), [this, reads_first] {
    if (!world_.hosts().has_journal(host())) return take_then_read();
    if (reads_first)
      found_ = world_.journal();
    else if (!take(world_, *this, last_write_))
      return;
    after(journal_delay(world_), [this, reads_first] {
      if (reads_first && !take(world_, *this, last_write_)) return;
      if (!reads_first) found_ = world_.journal();
      begin();
    });
  });
}

void coordinator_process::begin() {
  core_.emplace(coordinator_config(world_, self(), agent_), journaled(world_, found_));
  stores_ = coordinator::store_book{found_.stores, world_.bug()};
  restart_dispatcher();
  every(world_.plan().period / 2, [this] {
    perform(core_->on_tick(now()));
    if (alive) dispatcher_->tick();
    if (alive) journal_stores();
  });
}

void coordinator_process::restart_dispatcher() {
  finish_writes();
  if (!alive) return;
  const protocol::endpoint at{"somewhere", self().incarnation.value, {}};
  const auto announce = core_->on_dispatcher_started(at);
  dispatcher_.emplace(world_, *this, core_->dispatcher_incarnation());
  world_.say(this, "starts dispatcher incarnation {}", core_->dispatcher_incarnation());
  perform(announce);
  for (const auto& one : core_->starts().available_ps_shards()) perform({one});
  for (const auto& one : core_->starts().available_workers()) perform_one(one);
}

void coordinator_process::receive(const message& what) {
  if (!is_up()) return;
  const auto at_now = now();
  std::visit(common::action_handlers{
                 [&](const agent_hello& hello) {
                   agent_knows_ = true;
                   agent_ = hello.agent;
                   perform(core_->on_agent(hello.agent));
                 },
                 [&](const protocol::role_started& one) { perform(core_->on_role_started(one)); },
                 [&](const protocol::role_exited& one) { perform(core_->on_role_exited(one, at_now)); },
                 [&](const protocol::stop_job& one) { perform(core_->ending().on_stop(one)); },
                 [&](const protocol::scale_job& one) { perform(core_->on_scale(one)); },
                 [&](const protocol::join& one) {
                   asker_ = one;
                   perform(core_->on_join(one));
                 },
                 [&](const shard_digests& one) { perform(core_->ending().on_digests(one.shard, one.reply)); },
                 [&](const auto&) { dispatcher_->receive(what); }},
             what);
}

void coordinator_process::perform(const coordinator::coordinator_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(common::action_handlers{
                   [](const coordinator::slot_suspected&) {}, // it is in the directory
                   [this](const coordinator::journal_is_older& one) { expect_older(world_, *this, one); },
                   [this](const coordinator::restart_dispatcher&) { restart_dispatcher(); },
                   [this](const coordinator::send_grant& order) { send(agent_role, order.grant); },
                   [this](const coordinator::send_start_over& order) { send(agent_role, order.message); },
                   [this](const protocol::ps_shard_available& order) {
                     dispatcher_->core().on_shard_started(order.shard, order.incarnation);
                   },
                   [this](const protocol::ps_shard_gone& order) {
                     dispatcher_->core().on_shard_lost(order.shard, order.incarnation);
                   },
                   [this](const auto& order) { perform_one(order); }},
               action);
  }
}

// ---- the coordinator's decisions

void coordinator_process::perform_one(const coordinator::send_directory& order) {
  for (const auto& entry : order.directory.entries)
    if (entry.joined && entry.role.kind != protocol::role_kind::coordinator &&
        entry.role.kind != protocol::role_kind::data_dispatcher)
      send(entry.role, order.directory);
}

void coordinator_process::perform_one(const coordinator::answer_join& order) {
  auto reply = order.reply;
  if (reply.accepted) {
    const auto known = stores_.known().find({order.role.index});
    const bool is_current =
        known != stores_.known().end() && known->second.store.identity == asker_.opened.store.identity;
    const auto verdict = stores_.on_joined(asker_);
    reply.store_is_short = verdict.is_short;
    if (verdict.news) world_.say(this, "finds a store short: {}", describe(*verdict.news));
    if (order.role.kind == protocol::role_kind::ps_shard && world_.journal().owner == self().incarnation)
      world_.happened().note_opened(asker_, is_current, verdict.news.has_value(), world_.plan().damage > 0);
  }
  send(order.role, answered_join{asker_.self.incarnation, {self().incarnation, endpoint().process}, reply});
}

void coordinator_process::perform_one(const protocol::worker_available& order) {
  dispatcher_->perform(dispatcher_->core().on_worker_joined(order.worker, order.incarnation, now()));
}

void coordinator_process::perform_one(const protocol::worker_gone& order) {
  dispatcher_->perform(dispatcher_->core().on_worker_lost(order.worker, order.incarnation, now()));
}

void coordinator_process::perform_one(const protocol::poisoned_slot& order) {
  dispatcher_->perform(dispatcher_->core().on_poisoned_slot(order.what, now()));
}

void coordinator_process::perform_one(const coordinator::request_digests& order) {
  send(ps_shard_role(order.shard), order.request);
}

void coordinator_process::perform_one(const protocol::close_training& order) {
  dispatcher_->perform(dispatcher_->core().on_close(order.timeline));
}

void coordinator_process::perform_one(const coordinator::finish_job& order) {
  world_.end().report = job_report{order.ended, core_->ending().digests(), core_->ending().evaluation()};
  perform(core_->ending().on_report_written(order.ended));
}

void coordinator_process::perform_one(const coordinator::announce_end& order) {
  world_.say(this, "ends the job: {}", order.ended.reason);
  auto ended = order.ended;
  ended.coordinator = self().incarnation;
  send(agent_role, ended);
}

/// Nobody waits for it, so it takes no time here.
void coordinator_process::journal_stores() {
  for (const auto& status : dispatcher_->core().progress().shards) stores_.on_status(status);
  if (!may_write(world_, self().incarnation, last_write_) || !world_.hosts().has_journal(host())) return;
  const auto changed = stores_.to_journal(now());
  for (const auto& [shard, known] : changed) world_.journal().stores[shard] = known;
  if (!changed.empty()) last_write_ = ++world_.journal().last_write;
}

// ---- what the dispatcher says

void coordinator_process::hear(const data_dispatcher::to_coordinator& what) {
  const auto at_now = now();
  std::visit(
      common::action_handlers{
          [&](const protocol::training_finished& one) {
            perform(core_->ending().on_training_finished(one.timeline, one.version));
          },
          [&](const protocol::training_closed& one) {
            perform(core_->ending().on_training_closed(one.timeline));
          },
          [&](const protocol::evaluated& one) {
            world_.say(this, "has an evaluation of version {}", one.version);
            perform(core_->ending().on_evaluated(one));
          },
          [&](const protocol::slots_redispatched& one) {
            world_.say(this, "slots of worker {}/{} are with others", one.lost, one.incarnation);
            core_->recoveries().on_redispatched(one.lost, one.incarnation, protocol::duration(one.after_us));
          },
          [&](const protocol::worker_contributed& one) {
            core_->recoveries().on_resumed(protocol::worker_role(one.what.worker), one.what.incarnation,
                                           at_now);
          },
          [&](const protocol::ps_shard_resumed& one) {
            core_->recoveries().on_resumed(ps_shard_role(one.shard), one.incarnation, at_now);
          },
          [&](const protocol::timeline_started& one) {
            world_.say(this, "REWIND to version {} on timeline {}: {}", one.branch, one.timeline, one.reason);
            world_.happened().note_rewind(one, world_.plan().damage > 0);
          },
          [](const auto&) {}},
      what);
}

// ---- the journal

void coordinator_process::perform_one(const coordinator::journal_fences& order) {
  write(
      [roles = order.roles, is_older = order.older.has_value()](coordinator_journal& journal) {
        for (const auto& one : roles) journal.roles[one.role] = one;
        journal.fences_are_lost = false;
        if (is_older) journal.course_is_lost = true;
      },
      [this, id = order.id] { perform(core_->on_fences_journaled(id)); });
}

void coordinator_process::perform_one(const coordinator::journal_workers& order) {
  write([what = order.what](coordinator_journal& journal) { journal.workers = what; },
        [this, what = order.what] { perform(core_->on_workers_journaled(what)); });
}

/// R32: nobody hears of a number that was not in the journal. Where nobody asks for another,
/// nothing is said.
void coordinator_process::perform_one(const coordinator::send_workers_wanted& order) {
  const auto& word = order.message;
  const auto& kept = world_.journal().workers;
  const bool is_journaled = kept && kept->agent == word.agent && kept->request >= word.request;
  if (world_.plan().is_durable() && word.request > 0 && !is_journaled && !world_.happened().journal_lost &&
      world_.journal().owner == self().incarnation)
    broken("R32", "{} says {} workers, which is not journaled", name(), word.workers);
  if (dispatcher_) dispatcher_->core().on_workers_wanted(word.workers);
  if (world_.plan().scales) send(agent_role, word);
}

void coordinator_process::perform_one(const coordinator::journal_end& order) {
  write([ended = order.ended](coordinator_journal& journal) { journal.ended = ended; },
        [this] { perform(core_->ending().on_end_journaled()); });
}

void coordinator_process::write(std::function<void(coordinator_journal&)> change,
                                std::function<void()> then) {
  writes_.push_back({std::move(change), std::move(then)});
  if (writing_) return;
  writing_ = true;
  after(journal_delay(world_), [this] { write_next(); });
}

void coordinator_process::write_next() {
  writing_ = false;
  if (writes_.empty()) return;
  if (!may_write(world_, self().incarnation, last_write_))
    return world_.kill(*this, "its journal is opened by a newer start");
  if (!world_.hosts().passes(host(), cluster_hosts::journal))
    return world_.kill(*this, "its journal does not answer");
  const bool is_deaf = !world_.hosts().has_journal(host());
  if (is_deaf || (!world_.calm() && world_.random().chance(world_.plan().journal_silence)))
    return lose_answer(world_, *this, last_write_, std::move(writes_.front().change));
  const auto next = std::move(writes_.front());
  writes_.pop_front();
  next.change(world_.journal());
  last_write_ = ++world_.journal().last_write;
  next.change(found_);
  if (!writes_.empty()) {
    writing_ = true;
    after(journal_delay(world_), [this] { write_next(); });
  }
  next.then();
}

void coordinator_process::finish_writes() {
  while (alive && !writes_.empty()) write_next();
}

} // namespace dlrun::simulation
