#include "actors/worker/worker.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/membership.hpp"

#include <algorithm>
#include <iterator>

namespace dlrun::worker {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto map_deadline = std::chrono::seconds(2);

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
  if (const auto ready = role.acquire(); !ready) role.quit(ready.error().message);
  return role.make_behavior();
}

worker_state::worker_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , core_{core_config(context_)}
    , evaluation_{context_.job->ps_shards()} {}

result<void> worker_state::acquire() {
  const auto& job = *context_.job;
  auto server = transport::open_offers(job.channel(), job.run_token);
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  auto client = transport::open_fetches(job.channel(), job.run_token);
  if (!client) return tl::unexpected(client.error());
  client_ = std::move(*client);
  auto made = trainer::create(context_.job, {context_.role.index}, context_.self.incarnation, server_,
                              context_.progress);
  if (!made) return tl::unexpected(made.error());
  trainer_ = std::move(*made);
  if (job.spec.data().has_validation()) {
    auto evaluates = evaluator::create(context_.job, {context_.role.index}, context_.self.incarnation);
    if (!evaluates) return tl::unexpected(evaluates.error());
    evaluator_ = std::move(*evaluates);
  }
  common::publish<protocol::worker_actor>(self_, context_, server_->address(),
                                          [this](const protocol::endpoint& at) { on_published(at); });
  return {};
}

worker_state::behavior worker_state::make_behavior() {
  return {
      [this](const protocol::shard_state& state) { on_shard_state(state); },
      [this](const protocol::lease& lease) { on_lease(lease); },
      [this](const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher) {
        on_directory(directory, dispatcher);
      },
      [this](const protocol::fenced& message) { on_fenced(message); },
      [this](const protocol::evaluate& order) { on_evaluate(order); },
      [this](const protocol::snapshot_offer& offer) { on_snapshot_offer(offer); },
      [this](const protocol::probe& question) { carry_out(core_.on_probe(question, common::now())); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- entering the job
// --------------------------------------------------------------------------------------------------

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
  status_sender_.change_receiver();
  dispatcher_ = dispatcher;
  context_.log->info("joined: {} training records, {} steps", context_.job->sampler.options().record_count,
                     context_.job->steps());
  report_status();
  report_alive();
}

void worker_state::on_directory(const protocol::directory& directory,
                                const protocol::data_dispatcher_actor& dispatcher) {
  const std::pair age{directory.coordinator, directory.sequence};
  if (age < directory_age_) return;
  directory_age_ = age;
  if (std::exchange(dispatcher_, dispatcher) != dispatcher) status_sender_.change_receiver();
  for (const auto& entry : directory.entries)
    if (entry.role.kind == protocol::role_kind::ps_shard && entry.joined)
      connect_shard({entry.role.index}, entry);
  carry_out(core_.on_directory(directory, common::now()));
}

void worker_state::connect_shard(ps_shard_id shard, const protocol::directory_entry& entry) {
  auto& link = shards_[shard];
  const bool known = link.incarnation == entry.incarnation && (link.handle || link.connecting);
  if (known || entry.incarnation < link.incarnation) return;
  link.incarnation = entry.incarnation;
  link.handle = nullptr;
  link.connecting = true;
  common::connect<protocol::ps_shard_actor>(
      self_, *context_.job, entry.role, entry.incarnation, entry.at,
      [this, shard, inc = entry.incarnation](const protocol::ps_shard_actor& handle) {
        auto& found = shards_[shard];
        if (found.incarnation != inc) return;
        found.handle = handle;
        found.connecting = false;
        carry_out(pull_state{shard});
      },
      [this, shard, entry](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why);
        auto& found = shards_[shard];
        if (found.incarnation != entry.incarnation) return;
        found.connecting = false;
        self_->delayed_send(self_, common::join_retry,
                            protocol::continuation{std::make_shared<const std::function<void()>>(
                                [this, shard, entry] { connect_shard(shard, entry); })});
      });
}

void worker_state::on_fenced(const protocol::fenced& message) {
  carry_out(core_.on_fenced(message, common::now()));
}

void worker_state::on_lease(const protocol::lease& lease) {
  const auto before = core_.status();
  carry_out(core_.on_lease(lease, common::now()));
  const auto after = core_.status();
  if (std::pair(before.lease_of, before.lease_sequence) != std::pair(after.lease_of, after.lease_sequence))
    context_.log->info("lease: slots [{}, {}) sequence {}", lease.slots.begin, lease.slots.end,
                       lease.sequence);
  report_status();
}

void worker_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_.on_tick(common::now()));
  if (diverged_ && dispatcher_) self_->send(dispatcher_, *diverged_); // until the job has ended
  if (unusable_data_) self_->send(context_.agent, *unusable_data_);
  report_status();
  report_alive();
}

void worker_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- parameters
// --------------------------------------------------------------------------------------------------------

void worker_state::on_shard_state(const protocol::shard_state& state) {
  if (state.shard.value >= context_.job->ps_shards()) return;
  auto& link = shards_[state.shard];
  if (state.incarnation > link.mapped) {
    link.mapped = state.incarnation;
    link.parameters = state.parameters;
    link.source = nullptr;
    link.mapping = false;
    link.told = std::nullopt;
    link.bell = nullptr;
    link.connecting_bell = false;
    link.bell_again = {};
  }
  if (state.incarnation == link.mapped && (!link.told || link.told->timeline <= state.timeline))
    link.told = state;
  connect_bell(state.shard);
  carry_out(core_.on_shard_state(state, common::now()));
}

void worker_state::carry_out(const fetch_part& action) {
  auto& link = shards_[action.shard];
  if (link.source) return take_part_of(action, link.source);
  link.waiting = action;
  map_parameters(action.shard);
}

void worker_state::take_part_of(const fetch_part& action, const parameter_source& source) {
  if (context_.job->reads_in_place())
    return on_part(action, source->view(action.timeline, action.version).has_value());
  compute_thread_.run([this, source, action] {
    const bool ok = trainer_->copy_part(source, action.shard, action.timeline, action.version);
    const std::scoped_lock inside{self_->entry()};
    on_part(action, ok);
  });
}

void worker_state::on_part(const fetch_part& what, bool ok) {
  carry_out(core_.on_part(what, ok, common::now()));
}

void worker_state::map_parameters(ps_shard_id shard) {
  auto& link = shards_[shard];
  if (link.mapping) return;
  link.mapping = true;
  const auto post = common::poster<protocol::worker_actor>{self_};
  const auto& range = context_.job->shards.at(shard.value);
  const auto asked = client_->fetch(
      link.parameters.address, {link.parameters.segment}, transport::parameter_segment_bytes(range.size),
      transport::parameter_part(range.size, std::exchange(link.buffer, 1 - link.buffer), range.offset),
      std::chrono::steady_clock::now() + map_deadline,
      [this, post, shard, mapped = link.mapped](result<transport::segment> fetched) {
        auto shared = std::make_shared<result<transport::segment>>(std::move(fetched));
        post([this, shard, mapped, shared] { on_mapped(shard, mapped, std::move(*shared)); });
      });
  if (!asked) on_mapped(shard, link.mapped, tl::unexpected(asked.error()));
}

void worker_state::on_mapped(ps_shard_id shard, dlrun::incarnation incarnation,
                             result<transport::segment> fetched) {
  auto& link = shards_[shard];
  if (link.mapped != incarnation) return; // a newer start of the shard took its place meanwhile
  link.mapping = false;
  const auto waiting = std::exchange(link.waiting, std::nullopt);
  const auto& range = context_.job->shards.at(shard.value);
  auto reader = fetched ? transport::parameter_reader::open(std::move(*fetched), range.size, range.offset)
                        : result<transport::parameter_reader>{tl::unexpected(fetched.error())};
  const auto source =
      reader ? std::make_shared<const transport::parameter_reader>(std::move(*reader)) : nullptr;
  if (client_->is_shared()) link.source = source;
  if (!source) context_.log->warn("parameters-unreachable: ps_shard {}: {}", shard, reader.error().message);
  if (source && link.waiting_evaluation)
    take_last_version(*std::exchange(link.waiting_evaluation, std::nullopt), source);
  if (!waiting) return;
  const bool missed = source && !link.source && !source->view(waiting->timeline, waiting->version);
  if (missed && !std::exchange(link.missed, true)) {
    link.waiting = waiting;
    return map_parameters(shard);
  }
  link.missed = false;
  if (source)
    take_part_of(*waiting, source);
  else
    on_part(*waiting, false);
}

// ---- gradients
// ---------------------------------------------------------------------------------------------------------

void worker_state::carry_out(worker_actions actions) {
  std::ranges::move(actions, std::back_inserter(ordered_));
  if (std::exchange(carries_out_, true)) return;
  while (!ordered_.empty()) {
    const auto action = std::move(ordered_.front());
    ordered_.pop_front();
    std::visit([this](const auto& what) { carry_out(what); }, action);
  }
  carries_out_ = false;
}

void worker_state::carry_out(const compute_gradient& action) {
  const auto post = common::poster<protocol::worker_actor>{self_};
  std::vector<parameter_source> sources;
  if (context_.job->reads_in_place())
    for (ps_shard_id shard{0}; shard.value < context_.job->ps_shards(); ++shard.value)
      sources.push_back(shards_[shard].source);
  compute_thread_.run([this, action, sources = std::move(sources), post] {
    const auto begin = common::now();
    auto made = trainer_->compute(action, sources,
                                  [this](const auto& buffer, const auto& header, std::uint64_t from) {
                                    tell_part(buffer, header, from);
                                  });
    const auto took = common::now() - begin;
    if (!made)
      return post([this, action, why = made.error(), diverged = trainer_->diverged_slot()] {
        on_not_computed(action, why, diverged);
      });
    const std::scoped_lock inside{self_->entry()};
    on_computed(action, std::move(*made), took);
  });
}

void worker_state::on_not_computed(const compute_gradient& what, const error& why,
                                   std::optional<slot_id> diverged) {
  if (why.code == error_code::diverged)
    return report_divergence({what.step, what.slots}, diverged, why.message);
  if (why.code == error_code::role_lost) {
    context_.log->info("overwritten: step {}: {}", what.step, why.message);
    return carry_out(core_.on_overwritten(what.timeline, what.step, what.slots));
  }
  quit(fmt::format("cannot compute step {} slots [{}, {}): {}", what.step, what.slots.begin, what.slots.end,
                   why.message));
}

/// On the compute thread.
void worker_state::on_computed(const compute_gradient& what, computed_gradient made,
                               protocol::duration took) {
  slots_computed_ += what.slots.size();
  compute_time_ += took;
  kept_.insert_or_assign({what.step, what.slots}, std::move(made));
  carry_out(core_.on_computed(what.timeline, what.step, what.slots, common::now()));
}

void worker_state::carry_out(const check_gradient& action) {
  const auto post = common::poster<protocol::worker_actor>{self_};
  compute_thread_.run([this, what = action.made, post] {
    const gradient_key key{what.step, what.slots};
    std::span<const float> values; // also when they are given back: this thread alone writes there again
    {
      const std::scoped_lock inside{self_->entry()};
      const auto found = kept_.find(key);
      if (found == kept_.end()) return;
      values = found->second.buffer.buffer().values();
    }
    const auto finite = trainer_->check_finite(what, values);
    if (finite) return;
    post([this, key, why = finite.error(), slot = trainer_->diverged_slot()] {
      report_divergence(key, slot, why.message);
    });
  });
}

/// The job ends by this.
void worker_state::report_divergence(const gradient_key& what, std::optional<slot_id> slot,
                                     const std::string& text) {
  context_.log->error("diverged: step {}{}: {}", what.first, slot ? fmt::format(", slot {}", *slot) : "",
                      text);
  diverged_ = {context_.role, context_.self,    core_.timeline(),
               what.first,    slot.has_value(), slot.value_or(slot_id{}),
               text};
  self_->send(dispatcher_, *diverged_);
}

void worker_state::carry_out(const push_gradient& action) {
  const auto kept = kept_.find({action.step, action.slots});
  const auto& link = shards_[action.shard];
  if (kept == kept_.end() || !link.handle) return; // repeated by timer
  const auto message = push_of(kept->second.buffer, kept->second.header);
  if (link.bell && link.bell->ring(protocol::bytes_of(protocol::packed(message)))) return;
  self_->send(link.handle, message);
}

void worker_state::carry_out(const pull_state& action) {
  const auto& link = shards_[action.shard];
  if (link.handle)
    self_->send(link.handle, protocol::pull{core_.timeline(), {context_.role.index}, context_.self},
                caf::actor_cast<protocol::worker_actor>(self_));
}

void worker_state::carry_out(const forget_gradient& action) { kept_.erase({action.step, action.slots}); }

void worker_state::carry_out(const send_kept& action) {
  if (dispatcher_) self_->send(dispatcher_, action.message);
}

void worker_state::carry_out(const discard_all& action) {
  context_.log->info("timeline: adopts {}, drops {} kept gradients", action.adopted, kept_.size());
  kept_.clear();
}

void worker_state::carry_out(const exit_fenced& action) {
  quit(fmt::format("fenced: incarnation {} of worker {} exists", action.newest, context_.role.index));
}

// ---- reports
// -----------------------------------------------------------------------------------------------------------

void worker_state::report_status() {
  if (!dispatcher_) return;
  auto status = core_.status();
  status.slots_computed = slots_computed_;
  status.compute_us = static_cast<std::uint64_t>(compute_time_.count());
  status_sender_.send(self_, dispatcher_, status, [this] { report_status(); });
}

void worker_state::report_alive() {
  const protocol::heartbeat beat{.role = context_.role,
                                 .self = context_.self,
                                 .state = !dispatcher_               ? "starting"
                                          : evaluation_.is_running() ? "evaluating"
                                          : core_.trained()          ? "done"
                                                                     : "training",
                                 .step = core_.open_step().value_or(step_id{0}).value};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, beat, [this](const auto& location) {
        common::follow_coordinator<protocol::worker_actor>(
            self_, context_, location, endpoint_,
            [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
      });
}

} // namespace dlrun::worker
