#include "actors/ps_shard/ps_shard.hpp"

#include "actors/common/action_handlers.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/lasting_end.hpp"
#include "actors/common/membership.hpp"

#include <mutex>

namespace dlrun::ps_shard {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);

/// Room may come back by itself. What else is wrong does not: the next start opens the store anew,
/// which mends a folder that is gone, or says what it is.
bool is_lasting(const error& why, failure_streak& failed) {
  return why.code == error_code::system && failed.add(common::now());
}

ps_shard_core_config core_config(const common::role_context& context) {
  const auto order = context.job->sampler;
  return {.self = {context.role.index},
          .fence = context.self,
          .ps_shards = context.job->ps_shards(),
          .steps = context.job->steps(),
          .slots_of = [order](step_id step) { return order.slots(step); },
          .records_of = [order](step_id step, slot_id slot) { return order.records_in_slot(step, slot); },
          .early_publish_bound = common::early_publish_bound,
          .durability = context.job->durability(),
          .named_snapshots = context.job->evaluations(),
          .gates = context.job->evaluations(),
          .combine_norms = context.job->couples() ? norm_of : norm_exchange::combiner{}};
}

caf::result<protocol::digest_reply> answer_digests(ps_shard_state::pointer self,
                                                   const protocol::digest_request& request,
                                                   const protocol::shard_state& state, version_maker& maker) {
  if (request.timeline != state.timeline || request.version != state.applied)
    return caf::make_error(caf::sec::invalid_argument, "this shard stands at another version");
  if (request.count > protocol::digest_blocks_max)
    return caf::make_error(caf::sec::invalid_argument, "too many blocks in one request");
  auto promise = self->make_response_promise<protocol::digest_reply>();
  maker.digest(request.first_block, request.count,
               [promise, first = request.first_block](const result<std::string>& digests) mutable {
                 if (digests)
                   promise.deliver(protocol::digest_reply{first, *digests});
                 else
                   promise.deliver(caf::make_error(caf::sec::invalid_argument, digests.error().message));
               });
  return promise;
}

/// `worker` is null where there is no connection.
void fence_worker(ps_shard_state::pointer self, const protocol::worker_actor& worker, const send_fenced& one,
                  spdlog::logger& log) {
  log.info("fenced-worker: worker {} speaks under an old incarnation, the newest is {}", one.to, one.newest);
  if (worker) self->send(worker, protocol::fenced{protocol::worker_role(one.to), one.newest});
}

/// With what it waits for before it moves: its own disk, and its copies. Gradients that are lacking
/// then come when they come.
protocol::copies_word describe_copies(const store_copies& copies, const shard_disk& disk,
                                      const std::optional<ps_shard_core>& core, move_order& moves) {
  auto said = copies.word();
  said.is_moving = core && core->look().move.is_wanted();
  said.progress += moves.count_free(core && !waits_for_store(*core));
  if (disk.store()) said.progress += disk.store()->counters().bytes_on_disk;
  return said;
}

/// Without its image.
snapshot_order order_of(const take_snapshot& order, timeline_id timeline, const shard_reports& reports) {
  return {order.version, timeline, nullptr, reports.metrics(), order.ledger};
}

protocol::shard_state lacking(protocol::shard_state state, const protocol::slot_range& slots) {
  state.lacks = slots;
  return state;
}

std::string describe(const exit_fenced& one, const protocol::role_name& self) {
  return fmt::format("fenced: incarnation {} of ps_shard {} exists", one.newest, self.index);
}

/// Of one that cannot begin with what its store has. Each start on this host would find the same;
/// where there are copies, another host begins from one.
caf::sec code_of_end(const error& why, const common::job_facts& job) {
  return why.code == error_code::bad_usage && job.copies() == 0 ? common::lasting_end
                                                                : caf::sec::runtime_error;
}

void leave(ps_shard_state::pointer self, spdlog::logger& log) {
  log.info("leaves: it was asked to");
  self->quit(caf::exit_reason::user_shutdown);
}

} // namespace

ps_shard_state::behavior ps_shard_state::start(pointer self, common::role_context context) {
  self->state.role.reset(new ps_shard_state(self, std::move(context)));
  auto& role = *self->state.role;
  self->set_down_handler([&role](const caf::down_msg& down) {
    role.copies_.on_down(down.source);
    role.others_.on_down(down.source);
  });
  if (const auto ready = role.acquire(); !ready) role.quit(ready.error().message);
  return role.make_behavior();
}

ps_shard_state::ps_shard_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , post_{self}
    , workers_{[this](const auto& worker, const auto& state) { self_->send(worker, state); }}
    , others_{self,
              context_,
              {[this] {
                 return protocol::norm_request{
                     core_->timeline(), {context_.role.index}, step_from(core_->state().applied)};
               },
               [this] { carry_out(core_->on_tick()); }}}
    , reports_{self,
               context_,
               {[this](std::uint64_t probe) { return core_->status(probe); },
                [this] { return core_ ? core_->state().applied : disk_.store()->newest(); },
                [this](const protocol::coordinator_location& location) { on_located(location); },
                [this] { return describe_copies(copies_, disk_, core_, moves_); }}}
    , disk_{maker_, post_}
    , copies_{self,
              context_,
              {[this] { reports_.report_alive(); },
               [this](const loaded_standing& restored) {
                 if (const auto entered = enter(restored); !entered) quit(entered.error().message);
               },
               [this](version_id version) { carry_out(core_->on_committed(version)); },
               [this](timeline_id timeline, version_id version) {
                 carry_out(core_->on_snapshot_durable(timeline, version));
               }}}
    , maker_{context_.job,
             {context_.role.index},
             {post_,
              [this](const auto& task) {
                const std::scoped_lock inside{self_->entry()};
                task();
              }},
             make_version_events()} {}

/// The value thread finishes what it has in hand, for which it may have to enter.
ps_shard_state::~ps_shard_state() {
  disk_.leave();
  self_->entry().outside([this] { maker_.stop(); });
}

ps_shard_state::behavior ps_shard_state::make_behavior() {
  return {
      [this](const protocol::push& push) { on_push(push); },
      [this](const protocol::pull& pull, const protocol::worker_actor& from) { on_pull(pull, from); },
      [this](const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher) {
        on_directory(directory, dispatcher);
      },
      [this](const protocol::digest_request& request) {
        return answer_digests(self_, request, core_->state(), maker_);
      },
      [this](const protocol::snapshot_request& request, const protocol::worker_actor& from) {
        on_snapshot_request(request, from);
      },
      [this](const protocol::go_on& order) { carry_out(core_->on_go_on(order)); },
      [this](const protocol::rewind& order) { carry_out(core_->on_rewind(order)); },
      [this](const protocol::name_snapshot& order) { carry_out(core_->on_name_snapshot(order)); },
      [this](const protocol::floor& order) { carry_out(core_->on_floor(order)); },
      [this](const protocol::pin& order) { carry_out(core_->on_pin(order)); },
      [this](const protocol::probe& question) { carry_out(core_->on_probe(question)); },
      [this](const protocol::norm& message) {
        if (others_.take_word(message)) carry_out(core_->on_norm(message));
      },
      [this](const protocol::norm_request& message) {
        if (others_.take_word(message)) carry_out(core_->on_norm_request(message));
      },
      [this](const protocol::copy_standing& standing) { copies_.on_standing(standing); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- its start

result<void> ps_shard_state::acquire() {
  if (auto opened = open_channel(); !opened) return opened;
  const bool is_kept = context_.job->durability() != protocol::durability::off;
  if (is_kept)
    disk_.open({context_.job, {context_.role.index}, context_.self.incarnation, context_.log},
               [this](const std::optional<error>& why) { reports_.on_opening_stalled(why); });
  auto memory = std::exchange(context_.memory, nullptr);
  if (!memory) memory = std::make_shared<common::ps_shard_memory>();
  // The store says what it begins with.
  if (auto got = maker_.acquire(is_kept, std::move(memory->own)); !got) return got;
  if (!is_kept) return enter({});
  disk_.load_newest(std::move(memory->former), [this](const result<loaded_standing>& restored) {
    if (!restored) return quit(restored.error().message, code_of_end(restored.error(), *context_.job));
    reports_.restart(disk_.store());
    context_.opened = disk_.store()->opened();
    disk_.run(make_store_events());
    // Keepers answer it before it enters the job; nobody else knows where it is until then.
    if (context_.job->copies() > 0)
      endpoint_ = common::publish<protocol::ps_shard_actor>(self_, context_, server_->address());
    copies_.restart(disk_.store(), *restored);
  });
  return {};
}

result<void> ps_shard_state::open_channel() {
  const auto& job = *context_.job;
  auto server = transport::open_offers(job.channel());
  if (!server) return tl::unexpected(server.error());
  auto channel = transport::open_fetches(job.channel());
  if (!channel) return tl::unexpected(channel.error());
  server_ = std::move(*server);
  copies_.offer_at(server_);
  server_->on_doorbell([this, post = post_](std::unique_ptr<transport::doorbell> rung) {
    post([this, one = bell{std::move(rung)}] { listen(one); });
  });
  inbox_ = std::make_unique<gradient_inbox>(
      maker_.range(), job.model->layout().flat_size(), std::move(*channel), post_, context_.log,
      gradient_inbox::events{
          [this](const protocol::push& push) { return core_->wants(push); },
          [this](const protocol::push& push, const gradient& one) {
            const value_id id{next_value_++};
            maker_.hold(id, one);
            note_early(push, one);
            carry_out(core_->on_push(push, id));
          },
          [this](const protocol::push& push) { carry_out(core_->on_pull(question_in(push))); }});
  return {};
}

result<void> ps_shard_state::enter(loaded_standing restored) {
  const auto& segment = maker_.parameters()->shared();
  const auto offered = server_->offer(segment);
  if (!offered) return tl::unexpected(offered.error());
  workers_.serve({server_->address(), offered->value, segment.size()});
  lender_ = std::make_unique<snapshot_lender>(
      ps_shard_id{context_.role.index}, maker_.range().size, server_, context_.log,
      snapshot_lender::links{[this](timeline_id timeline, version_id version, const auto& done) {
                               disk_.freeze(timeline, version, done);
                             },
                             [this](const auto& worker, const auto& offer) { self_->send(worker, offer); },
                             [this](const std::string& why) { quit(why); }});
  core_.emplace(core_config(context_), std::move(restored));
  if (endpoint_.process == 0)
    endpoint_ = common::publish<protocol::ps_shard_actor>(self_, context_, server_->address());
  join();
  return {};
}

threaded_store_events ps_shard_state::make_store_events() {
  return {.log = {.committed =
                      [this](timeline_id timeline, version_id version) {
                        if (timeline == core_->timeline()) copies_.on_logged(version);
                      },
                  .stalled = [this](const auto& why) { reports_.on_log_stalled(why); },
                  .broken = [this](const error& why) { quit(why.message); }},
          .snapshot_durable =
              [this](timeline_id timeline, version_id version) {
                reports_.on_snapshot_stalled(std::nullopt);
                failed_snapshots_.end();
                copies_.on_snapshot(timeline, version);
              },
          .snapshot_failed =
              [this](timeline_id timeline, version_id version, const error& why) {
                context_.log->warn("snapshot-failed: version {}: {}", version, why.message);
                if (is_full(why)) reports_.on_snapshot_stalled(why);
                if (is_lasting(why, failed_snapshots_)) return quit(why.message);
                carry_out(core_->on_snapshot_failed(timeline, version));
              }};
}

void ps_shard_state::join() {
  common::join_coordinator<protocol::ps_shard_actor>(
      self_, context_, endpoint_,
      [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_->start());
}

void ps_shard_state::on_joined(const protocol::join_reply& reply,
                               const protocol::data_dispatcher_actor& dispatcher) {
  if (!reply.accepted) return quit(reply.reason);
  if (reply.store_is_short) disk_.store()->renew_identity();
  const auto& range = maker_.range();
  context_.log->info("joined: blocks [{}, {}), {} floats", range.first_block, range.last_block, range.size);
  reports_.follow(dispatcher);
  reports_.report();
}

// ---- gradients

void ps_shard_state::on_push(const protocol::push& push) {
  if (!core_->speaks_for_itself(push.worker, push.self))
    context_.log->warn("push-refused: worker {} does not know the token of incarnation {}", push.worker,
                       push.self.incarnation);
  else if (core_->wants(push))
    inbox_->take(push, common::now());
  else
    carry_out(core_->on_pull(question_in(push)));
}

void ps_shard_state::on_part(const protocol::push& push, std::uint64_t from) {
  if (!core_ || !core_->speaks_for_itself(push.worker, push.self) || !core_->wants(push)) return;
  if (const auto part = inbox_->find_part(push, from)) note_early(push, *part);
}

/// A step is begun with before all of it is there.
void ps_shard_state::note_early(const protocol::push& push, const gradient& part) {
  if (!core_->is_next(push) || !maker_.note_early(push, part)) return;
  if (const auto revision = core_->begin_early(push.step))
    maker_.apply_early(push.step, *revision, core_->timeline(), core_->state().parked);
}

/// Heard on the value thread.
void ps_shard_state::listen(const bell& one) {
  heard_doorbell ear{
      {.greeted =
           [this, one](worker_id worker, const protocol::fence& start) {
             return core_ && core_->speaks_for_itself(worker, start) &&
                    workers_.attach(worker, start.incarnation, one);
           },
       .pushed = [this](const protocol::push& push) { on_push(push); },
       .begun = [this](const protocol::push& push, std::uint64_t from) { on_part(push, from); },
       .ended = [this, one](worker_id worker) { workers_.detach(worker, one); }}};
  const auto heard = maker_.listen(one, [this, ear](auto packet) mutable {
    const std::scoped_lock inside{self_->entry()};
    return ear.on_packet(packet);
  });
  if (!heard) context_.log->warn("doorbell-unheard: {}", heard.error().message);
}

// ---- what others say and ask

void ps_shard_state::on_pull(const protocol::pull& pull, const protocol::worker_actor& from) {
  if (!core_->speaks_for_itself(pull.worker, pull.self)) return;
  using answer = attached_workers::answer;
  const auto found = workers_.on_pull(pull.worker, pull.self.incarnation, from);
  if (found == answer::unanswerable) return;
  if (found == answer::new_start)
    context_.log->info("answers: worker {} pulls, this shard stands at version {}", pull.worker,
                       core_->state().applied);
  carry_out(core_->on_pull(pull, inbox_->on_the_way(pull.timeline, pull.step, common::now())));
}

void ps_shard_state::on_directory(const protocol::directory& directory,
                                  const protocol::data_dispatcher_actor& dispatcher) {
  const auto name = std::pair(directory.coordinator, directory.sequence);
  if (name < directory_) return;
  directory_ = name;
  reports_.follow(dispatcher);
  for (const auto& entry : directory.entries) {
    if (entry.role.kind != protocol::role_kind::worker) continue;
    inbox_->forget({entry.role.index}, entry.incarnation);
    workers_.forget({entry.role.index}, entry.incarnation);
  }
  others_.follow(directory);
  carry_out(core_->on_directory(directory));
}

void ps_shard_state::on_snapshot_request(const protocol::snapshot_request& request,
                                         const protocol::worker_actor& from) {
  if (core_->has_snapshot(request.timeline, request.version) &&
      core_->speaks_for_itself(request.worker, request.self))
    lender_->on_request(request, from, common::now());
}

void ps_shard_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  follow_move_order();
  carry_out(core_->on_tick());
  copies_.on_tick();
  lender_->withdraw_unused(common::now());
  reports_.on_tick();
}

// ---- what the agent says

void ps_shard_state::on_located(const protocol::coordinator_location& location) {
  if (core_) // it has entered the job
    common::follow_coordinator<protocol::ps_shard_actor>(
        self_, context_, location, endpoint_,
        [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
  moves_.on_answer(location.keepers.moves, common::now());
  follow_move_order(); // first: who stays commits what its copy lacked, and does not end for that
  copies_.on_keepers(location.keepers);
}

void ps_shard_state::follow_move_order() {
  if (core_) carry_out(core_->on_move(moves_.holds(common::now())));
}

void ps_shard_state::quit(const std::string& why, caf::sec code) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(code, why));
}

// ---- what the core decided

void ps_shard_state::carry_out(const ps_shard_actions& actions) {
  for (const auto& action : actions) carry_out(action);
  if (core_) copies_.on_core(core_->look().pipeline);
}

void ps_shard_state::carry_out(const ps_shard_action& action) {
  std::visit(
      common::action_handlers{
          [this](const combine& sum) { maker_.carry_out(sum); },
          [this](const make_zero& zero) { maker_.carry_out(zero); },
          [this](const release& value) { maker_.carry_out(value); },
          [this](const measure& order) { maker_.carry_out(order, core_->state().parked); },
          [this](const retain& order) { maker_.carry_out(order); },
          [this](const apply& order) { maker_.carry_out(order, core_->timeline(), core_->state().parked); },
          [this](const append& order) { maker_.carry_out(order, disk_.store()); },
          [this](const take_snapshot& order) {
            const bool is_current = order.version == core_->state().applied;
            context_.log->info("snapshot: version {}{}", order.version, is_current ? "" : " from the log");
            maker_.carry_out(order_of(order, core_->timeline(), reports_), is_current, disk_.store());
          },
          [this](const drop_below& order) { disk_.store()->drop_below(order.version, order.kept); },
          [this](const perform_rewind& order) { go_back(order); },
          [this](const send_norm& one) { others_.send(one.to, one.message); },
          [this](const send_norm_request& one) { others_.send(one.to, one.message); },
          [this](const publish&) {
            const auto state = core_->state();
            reports_.on_served(state.applied);
            workers_.tell_all(state);
          },
          [this](const send_state& one) { workers_.tell(one.to, lacking(core_->state(), one.lacks)); },
          [this](const send_status& one) { reports_.send_status(one.probe); },
          [this](const send_fenced& one) { fence_worker(self_, workers_.find(one.to), one, *context_.log); },
          [this](const exit_fenced& one) { quit(describe(one, context_.role)); },
          [this](const end_in_order&) { leave(self_, *context_.log); }},
      action);
}

void ps_shard_state::go_back(const perform_rewind& order) {
  context_.log->info("rewind: to version {} on timeline {}", order.version, order.timeline);
  disk_.go_back(order, [this](const result<loaded_standing>& loaded) {
    if (!loaded) return quit(loaded.error().message);
    reports_.restart(disk_.store());
    copies_.restart(disk_.store(), *loaded);
    carry_out(core_->on_rewound(*loaded));
    reports_.report();
  });
}

/// A worker reuses a buffer only when this shard has applied its step. So where one changed while
/// it was read this start is wrong: it was taken for dead and replaced while it was stopped, and
/// nothing it has may be published.
version_maker::events ps_shard_state::make_version_events() {
  return {.measured =
              [this](step_id step, norm_partials partials) {
                carry_out(core_->on_measured(step, std::move(partials)));
              },
          .applied = [this](step_id step, const auto& metrics,
                            protocol::duration took) { on_applied(step, metrics, took); },
          .not_applied =
              [this](step_id step, timeline_id timeline, const error& why) {
                if (why.code != error_code::diverged) return quit("overtaken: " + why.message);
                if (timeline == core_->timeline()) reports_.on_diverged(step, timeline, why);
              },
          .overtaken = [this](const std::string& why) { quit("overtaken: " + why); }};
}

void ps_shard_state::on_applied(step_id step, const std::optional<step_metrics>& metrics,
                                protocol::duration took) {
  if (metrics) reports_.add(step, *metrics);
  carry_out(core_->on_applied(step, took));
  if (!std::exchange(has_applied_, true))
    context_.log->info("first-step: version {} is made", version_after(step));
  if (step.value + 1 == context_.job->steps())
    context_.log->info("trained: version {} is made", version_after(step));
}

} // namespace dlrun::ps_shard
