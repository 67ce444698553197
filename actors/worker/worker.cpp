#include "actors/worker/worker.hpp"

#include "actors/common/action_handlers.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/membership.hpp"
#include "actors/worker/parameter_parts.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <iterator>
#include <mutex>

namespace dlrun::worker {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);

worker_core_config core_config(const common::role_context& context) {
  const auto order = context.job->sampler;
  return {.self = {context.role.index},
          .fence = context.self,
          .ps_shards = context.job->ps_shards(),
          .steps = context.job->steps(),
          .slots_of = [order](step_id step) { return order.slots(step); },
          .early_publish_bound = common::early_publish_bound,
          .durability = context.job->durability()};
}

} // namespace

worker_state::behavior worker_state::start(pointer self, common::role_context context) {
  self->state.role.reset(new worker_state(self, std::move(context)));
  auto& role = *self->state.role;
  self->set_down_handler([&role](const caf::down_msg& down) { role.links_.on_down(down.source); });
  if (const auto ready = role.acquire(); !ready) role.quit(ready.error().message);
  return role.make_behavior();
}

worker_state::worker_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , post_{self}
    , core_{core_config(context_)}
    , links_{self,
             context_,
             {[this](ps_shard_id shard, incarnation start) {
                carry_out(core_.on_connected(shard, start, common::now()));
              },
              [this](ps_shard_id shard, incarnation start) {
                carry_out(core_.on_unconnected(shard, start, common::now()));
              }}}
    , reports_{self, context_, make_report_links()}
    , maker_{context_, way_back(), make_gradient_events()} {}

/// Its threads finish what they have in hand, for which they may have to enter.
worker_state::~worker_state() {
  self_->entry().outside([this] {
    if (evaluations_) evaluations_->stop();
    maker_.stop();
  });
}

worker_state::behavior worker_state::make_behavior() {
  return {
      [this](const protocol::shard_state& state) { on_shard_state(state); },
      [this](const protocol::lease& lease) { on_lease(lease); },
      [this](const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher) {
        on_directory(directory, dispatcher);
      },
      [this](const protocol::fenced& message) { carry_out(core_.on_fenced(message, common::now())); },
      [this](const protocol::evaluate& order) {
        if (!core_.status().leaving) evaluations_->on_order(order, core_.timeline());
      },
      [this](const protocol::snapshot_offer& offer) { evaluations_->on_offer(offer); },
      [this](const protocol::probe& question) { carry_out(core_.on_probe(question, common::now())); },
      [this](const protocol::leave_job&) { on_leave(); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

common::way_back worker_state::way_back() {
  return {post_, [this](const auto& task) {
            const std::scoped_lock inside{self_->entry()};
            task();
          }};
}

// ---- its start

result<void> worker_state::acquire() {
  const auto& job = *context_.job;
  auto server = transport::open_offers(job.channel());
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  auto client = transport::open_fetches(job.channel());
  if (!client) return tl::unexpected(client.error());
  client_ = std::move(*client);
  make_parts();
  if (auto opened = maker_.open(server_); !opened) return opened;
  context_.device = maker_.device();
  context_.log->info("device: {}", context_.device);
  if (const auto layers = maker_.host_layers(); !layers.empty())
    context_.log->warn("host-layers: {} of the model are computed on the processor, with a copy there and "
                       "back for each microbatch",
                       fmt::join(layers, ", "));
  if (auto opened = evaluations_->open(); !opened) return opened;
  on_published(common::publish<protocol::worker_actor>(self_, context_, server_->address()));
  return {};
}

void worker_state::make_parts() {
  const auto listen = [this](const auto& bell, const auto& heard) { return maker_.listen(bell, heard); };
  const auto hear = [this](const auto& state) { carry_out(core_.on_shard_state(state, common::now())); };
  bells_ = std::make_unique<shard_doorbells>(context_, *client_, server_->near_address(),
                                             shard_doorbells::links{way_back(), listen, hear});
  sources_ = std::make_unique<parameter_sources>(context_, *client_, way_back());
  evaluations_ = std::make_unique<evaluations>(context_, *client_, make_evaluation_links());
}

evaluations::links worker_state::make_evaluation_links() {
  return {.back = way_back(),
          .request =
              [this](ps_shard_id shard, const protocol::snapshot_request& request) {
                links_.send(shard, request, caf::actor_cast<protocol::worker_actor>(self_));
              },
          .get_parameters = [this](ps_shard_id shard, const auto& done) { sources_->get(shard, done); },
          .evaluated = [this](const protocol::evaluated& made) { reports_.tell_dispatcher(made); },
          .unusable = [this](const protocol::stop_job& why) { reports_.on_unusable_data(why); },
          .failed = [this](const std::string& why) { quit(why); }};
}

worker_reports::links worker_state::make_report_links() {
  return {.status =
              [this] {
                auto status = core_.status();
                maker_.add_figures(status);
                return status;
              },
          .activity =
              [this] {
                return core_.status().leaving       ? "leaving"
                       : evaluations_->is_running() ? "evaluating"
                       : core_.trained()            ? "done"
                                                    : "training";
              },
          .located =
              [this](const protocol::coordinator_location& location) {
                common::follow_coordinator<protocol::worker_actor>(
                    self_, context_, location, endpoint_,
                    [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
              }};
}

void worker_state::on_published(const protocol::endpoint& at) {
  endpoint_ = at;
  common::join_coordinator<protocol::worker_actor>(
      self_, context_, at,
      [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
  self_->delayed_send(self_, tick_period, protocol::tick{});
}

void worker_state::on_joined(const protocol::join_reply& reply,
                             const protocol::data_dispatcher_actor& dispatcher) {
  if (!reply.accepted) return quit(reply.reason);
  context_.log->info("joined: {} training records, {} steps", context_.job->sampler.options().record_count,
                     context_.job->steps());
  reports_.follow(dispatcher);
  reports_.report();
}

// ---- what others say

void worker_state::on_directory(const protocol::directory& directory,
                                const protocol::data_dispatcher_actor& dispatcher) {
  if (!core_.is_newest(directory)) return;
  reports_.follow(dispatcher);
  carry_out(core_.on_directory(directory, common::now()));
}

void worker_state::on_shard_state(const protocol::shard_state& state) {
  if (state.shard.value >= context_.job->ps_shards()) return;
  sources_->follow(state);
  bells_->follow(state);
  carry_out(core_.on_shard_state(state, common::now()));
}

void worker_state::on_lease(const protocol::lease& lease) {
  const auto before = core_.status();
  carry_out(core_.on_lease(lease, common::now()));
  const auto after = core_.status();
  if (std::pair(before.lease_of, before.lease_sequence) != std::pair(after.lease_of, after.lease_sequence))
    context_.log->info("lease: slots [{}, {}) sequence {}", lease.slots.begin, lease.slots.end,
                       lease.sequence);
  reports_.report_status();
}

/// The dispatcher hears of it at once, and gives its slots to the others.
void worker_state::on_leave() {
  if (core_.status().leaving) return;
  context_.log->info("leaving: keeps {} gradients until they are committed", maker_.kept());
  carry_out(core_.on_leave(common::now()));
  reports_.report();
}

void worker_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_.on_tick(common::now()));
  reports_.on_tick();
}

void worker_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- what the core decided

void worker_state::carry_out(worker_actions actions) {
  std::ranges::move(actions, std::back_inserter(ordered_));
  if (std::exchange(carries_out_, true)) return;
  while (!ordered_.empty()) {
    const auto action = std::move(ordered_.front());
    ordered_.pop_front();
    carry_out(action);
  }
  carries_out_ = false;
}

void worker_state::carry_out(const worker_action& action) {
  std::visit(common::action_handlers{
                 [this](const connect_shard& order) { links_.connect(order.entry); },
                 [this](const fetch_part& order) { fetch(order); },
                 [this](const compute_gradient& order) {
                   const bool in_place = context_.job->reads_in_place();
                   maker_.carry_out(order, in_place ? sources_->all() : std::vector<parameter_source>{});
                 },
                 [this](const push_gradient& order) { push(order); },
                 [this](const send_pull& one) {
                   links_.send(one.to, one.message, caf::actor_cast<protocol::worker_actor>(self_));
                 },
                 [this](const wake& order) { wake_after(order.after); },
                 [this](const check_gradient& order) { maker_.carry_out(order); },
                 [this](const forget_gradient& order) { maker_.carry_out(order); },
                 [this](const send_kept& order) { reports_.tell_dispatcher(order.message); },
                 [this](const discard_all& order) {
                   context_.log->info("timeline: adopts {}, drops {} kept gradients", order.adopted,
                                      maker_.kept());
                   maker_.discard_all();
                 },
                 [this](const exit_left&) {
                   context_.log->info("left");
                   post_([this] { self_->quit(); }); // by whatever thread it came to that
                 },
                 [this](const exit_fenced& order) {
                   quit(fmt::format("fenced: incarnation {} of worker {} exists", order.newest,
                                    context_.role.index));
                 }},
             action);
}

void worker_state::wake_after(protocol::duration time) {
  common::post_later(self_, self_, time, [this] { carry_out(core_.on_tick(common::now())); });
}

void worker_state::fetch(const fetch_part& order) {
  sources_->get(order.shard, [this, order](const parameter_source& source) {
    const auto outcome = outcome_of({.is_reachable = source != nullptr,
                                     .has_version = source && source->view(order.timeline, order.version),
                                     .shows_all = sources_->is_shared(order.shard),
                                     .is_read_in_place = context_.job->reads_in_place()});
    if (outcome) return carry_out(core_.on_part(order, *outcome, common::now()));
    maker_.copy(order, source);
  });
}

/// Where there is neither doorbell nor connection it is lost, and repeated by timer.
void worker_state::push(const push_gradient& order) {
  const auto message = maker_.find_push(order.step, order.slots);
  if (message && !bells_->ring(order.shard, *message)) links_.send(order.shard, *message);
}

// ---- what its gradients came to

gradient_maker::events worker_state::make_gradient_events() {
  return {.copied =
              [this](const fetch_part& order, bool is_there) {
                const auto outcome = is_there ? fetch_outcome::taken : fetch_outcome::gone;
                carry_out(core_.on_part(order, outcome, common::now()));
              },
          .computed =
              [this](const compute_gradient& made) {
                carry_out(core_.on_computed(made.timeline, made.step, made.slots, common::now()));
                // The dispatcher waits for that with its share.
                if (!std::exchange(has_computed_, true)) post_([this] { reports_.report_status(); });
              },
          .overwritten =
              [this](const compute_gradient& order) {
                carry_out(core_.on_overwritten(order.timeline, order.step, order.slots, common::now()));
              },
          .part =
              [this](const protocol::push& push, std::uint64_t from) {
                if (push.timeline == core_.timeline()) bells_->tell_part(push, from);
              },
          .diverged = [this](step_id step, std::optional<slot_id> slot,
                             const std::string& text) { on_diverged(step, slot, text); },
          .failed = [this](const std::string& why) { quit(why); }};
}

/// The job ends by this.
void worker_state::on_diverged(step_id step, std::optional<slot_id> slot, const std::string& text) {
  reports_.on_diverged({context_.role, context_.self, core_.timeline(), step, slot.has_value(),
                        slot.value_or(slot_id{}), text});
}

} // namespace dlrun::worker
