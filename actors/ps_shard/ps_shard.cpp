#include "actors/ps_shard/ps_shard.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/membership.hpp"
#include "kernels/cpu/reduce.hpp"

namespace dlrun::ps_shard {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto fetch_deadline = std::chrono::seconds(2);
/// Pushes that wait for one segment to be mapped; what is beyond is dropped, its sender repeats it.
constexpr std::size_t waiting_max = 64;
/// Sums and updates are bound by the memory's bandwidth, which a few cores use up.
constexpr unsigned threads_max = 4;

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

} // namespace

ps_shard_state::behavior ps_shard_state::start(pointer self, common::role_context context) {
  self->state.role.reset(new ps_shard_state(self, std::move(context)));
  auto& role = *self->state.role;
  self->set_down_handler([&role](const caf::down_msg& down) { role.on_link_down(down.source); });
  if (const auto ready = role.acquire(); !ready) role.quit(ready.error().message);
  return role.make_behavior();
}

ps_shard_state::ps_shard_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , range_{context_.job->shards.at(context_.role.index)}
    , team_{std::make_shared<base::thread_team>(base::fair_threads(context_.job->ps_shards(), threads_max))}
    , sums_{range_.size}
    , early_{range_.size} {}

/// The value thread finishes what it has in hand, for which it may have to enter.
ps_shard_state::~ps_shard_state() {
  is_gone_ = true;
  self_->entry().outside([this] { values_thread_.stop(); });
}

result<void> ps_shard_state::acquire() {
  const auto& job = *context_.job;
  auto server = transport::open_offers(job.channel(), job.run_token);
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  server_->on_doorbell([this, post](std::unique_ptr<transport::doorbell> bell) {
    post([this, bell = std::shared_ptr<const transport::doorbell>{std::move(bell)}] { on_doorbell(bell); });
  });
  auto client = transport::open_fetches(job.channel(), job.run_token);
  if (!client) return tl::unexpected(client.error());
  client_ = std::move(*client);
  const bool is_kept = job.durability() != protocol::durability::off;
  const auto opened = is_kept ? open_storage() : nullptr; // then the store says what it begins with
  auto parameters = is_kept ? shard_parameters::create_empty(context_.job, {context_.role.index})
                            : shard_parameters::create(context_.job, {context_.role.index});
  if (!parameters) return tl::unexpected(parameters.error());
  parameters_ = std::make_shared<shard_parameters>(std::move(*parameters));
  parameters_->use(team_);
  if (!is_kept) return enter({});
  restore_from(opened);
  return {};
}

/// Opening and replaying take their time: on the value thread, which is idle. While the store is verified
/// there, memory for the parameters is got here.
ps_shard_state::opened_storage ps_shard_state::open_storage() {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  shard_storage_options options{context_.job, {context_.role.index}, context_.self.incarnation, context_.log};
  options.watcher = {[this, post](const error& why) {
                       post([this, why] { on_opening_stalled(why); });
                       return !is_gone_;
                     },
                     [this, post] { post([this] { on_log_stalled(std::nullopt); }); }};
  auto opened = std::make_shared<opened_storage::element_type>(nullptr);
  values_thread_.run([opened, options = std::move(options)] { *opened = shard_storage::open(options); });
  return opened;
}

void ps_shard_state::restore_from(const opened_storage& opened) {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([this, parameters = parameters_, post, opened] {
    auto restored = *opened ? (**opened)->restore_newest(*parameters)
                            : result<restored_state>{tl::unexpected(opened->error())};
    const auto shared = std::make_shared<result<restored_state>>(std::move(restored));
    post([this, opened, shared] {
      if (*opened) storage_ = **opened;
      on_restored(shared);
    });
  });
}

void ps_shard_state::on_restored(const std::shared_ptr<result<restored_state>>& restored) {
  if (!*restored) return quit(restored->error().message);
  metrics_ = epoch_metrics{storage_->restored_metrics()};
  storage_->run(make_storage_events());
  if (const auto entered = enter(std::move(**restored)); !entered) quit(entered.error().message);
}

result<void> ps_shard_state::enter(restored_state restored) {
  const auto offered = server_->offer(parameters_->shared());
  if (!offered) return tl::unexpected(offered.error());
  parameters_at_ = {server_->address(), offered->value, parameters_->shared().size()};
  core_.emplace(core_config(context_), std::move(restored));
  common::publish<protocol::ps_shard_actor>(self_, context_, server_->address(),
                                            [this](const protocol::endpoint& at) { on_published(at); });
  return {};
}

shard_storage_events ps_shard_state::make_storage_events() {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  return {.log = {.committed =
                      [this, post](timeline_id timeline, version_id version) {
                        post([this, timeline, version] {
                          if (timeline == core_->timeline()) carry_out(core_->on_committed(version));
                        });
                      },
                  .stalled = [this, post](const auto& why) { post([this, why] { on_log_stalled(why); }); },
                  .broken = [this, post](const error& why) { post([this, why] { quit(why.message); }); }},
          .snapshot_durable =
              [this, post](version_id version) {
                post([this, version] {
                  on_snapshot_stalled(std::nullopt);
                  carry_out(core_->on_snapshot_durable(version));
                });
              },
          .snapshot_failed =
              [this, post](version_id version, const error& why) {
                post([this, version, why] {
                  context_.log->warn("snapshot-failed: version {}: {}", version, why.message);
                  if (is_full(why)) on_snapshot_stalled(why);
                  carry_out(core_->on_snapshot_failed(version));
                });
              }};
}

ps_shard_state::behavior ps_shard_state::make_behavior() {
  return {
      [this](const protocol::push& push) { on_push(push); },
      [this](const protocol::pull& pull, const protocol::worker_actor& from) { on_pull(pull, from); },
      [this](const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher) {
        on_directory(directory, dispatcher);
      },
      [this](const protocol::digest_request& request) { return on_digest_request(request); },
      [this](const protocol::snapshot_request& request, const protocol::worker_actor& from) {
        on_snapshot_request(request, from);
      },
      [this](const protocol::go_on& order) { carry_out(core_->on_go_on(order)); },
      [this](const protocol::rewind& order) { carry_out(core_->on_rewind(order)); },
      [this](const protocol::name_snapshot& order) { carry_out(core_->on_name_snapshot(order)); },
      [this](const protocol::floor& order) { carry_out(core_->on_floor(order)); },
      [this](const protocol::pin& order) { carry_out(core_->on_pin(order)); },
      [this](const protocol::probe& question) { carry_out(core_->on_probe(question)); },
      [this](const protocol::norm& message) { on_norm(message); },
      [this](const protocol::norm_request& message) { on_norm_request(message); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- entering the job

void ps_shard_state::on_published(const protocol::endpoint& at) {
  endpoint_ = at;
  common::join_coordinator<protocol::ps_shard_actor>(
      self_, context_, at,
      [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_->start());
}

void ps_shard_state::on_joined(const protocol::join_reply& reply,
                               const protocol::data_dispatcher_actor& dispatcher) {
  if (!reply.accepted) return quit(reply.reason);
  status_sender_.change_receiver();
  dispatcher_ = dispatcher;
  context_.log->info("joined: blocks [{}, {}), {} floats", range_.first_block, range_.last_block,
                     range_.size);
  report_status();
  report_alive();
}

void ps_shard_state::on_directory(const protocol::directory& directory,
                                  const protocol::data_dispatcher_actor& dispatcher) {
  if (std::pair(directory.coordinator, directory.sequence) <
      std::pair(directory_.coordinator, directory_.sequence))
    return;
  directory_ = directory;
  if (std::exchange(dispatcher_, dispatcher) != dispatcher) status_sender_.change_receiver();
  for (const auto& entry : directory.entries)
    if (entry.role.kind == protocol::role_kind::worker) forget_sources({entry.role.index}, entry.incarnation);
  connect_shards();
  carry_out(core_->on_directory(directory));
}

void ps_shard_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_->on_tick());
  give_up_on_quota();
  withdraw_unused_snapshot();
  report_divergence();
  report_status();
  report_alive();
}

void ps_shard_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- pushes

bool ps_shard_state::speaks_for_itself(worker_id worker, const protocol::fence& claimed) const {
  for (const auto& entry : directory_.entries)
    if (entry.role == protocol::worker_role(worker) && entry.incarnation == claimed.incarnation)
      return entry.token == claimed.token;
  return true; // not the newest start we know of: the core compares incarnations
}

void ps_shard_state::on_pull(const protocol::pull& pull, const protocol::worker_actor& from) {
  if (!speaks_for_itself(pull.worker, pull.self)) return;
  auto& attached = workers_[pull.worker];
  if (pull.self.incarnation < attached.incarnation) return;
  if (pull.self.incarnation != attached.incarnation)
    context_.log->info("answers: worker {} pulls, this shard stands at version {}", pull.worker,
                       core_->state().applied);
  if (pull.self.incarnation != attached.incarnation) attached.bell = nullptr;
  attached.incarnation = pull.self.incarnation;
  attached.handle = from;
  attached.told = std::nullopt; // who asks gets a message
  carry_out(core_->on_pull(pull));
}

void ps_shard_state::on_push(const protocol::push& push) {
  if (!speaks_for_itself(push.worker, push.self)) {
    context_.log->warn("push-refused: worker {} does not know the token of incarnation {}", push.worker,
                       push.self.incarnation);
    return;
  }
  if (!core_->wants(push)) return carry_out(core_->on_unusable_push(push));
  const segment_key key{push.where.address, push.where.segment};
  const auto found = sources_.find(key);
  if (found == sources_.end()) return fetch_gradient(key, push);
  if (found->second.reader) return accept(push, found->second.reader);
  if (found->second.waiting.size() < waiting_max) found->second.waiting.push_back(push);
}

void ps_shard_state::fetch_gradient(const segment_key& key, const protocol::push& push) {
  const auto floats = context_.job->model->layout().flat_size();
  if (push.where.bytes != transport::gradient_segment_bytes(floats)) {
    context_.log->warn("push-refused: worker {} offers {} bytes for {} floats", push.worker, push.where.bytes,
                       floats);
    return;
  }
  sources_[key] = {push.worker, push.self.incarnation, nullptr, {push}};
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  const auto asked = client_->fetch(
      key.first, {key.second}, push.where.bytes, transport::gradient_part(range_.offset, range_.size),
      std::chrono::steady_clock::now() + fetch_deadline,
      [this, post, key](result<transport::segment> fetched) {
        auto shared = std::make_shared<result<transport::segment>>(std::move(fetched));
        post([this, key, shared] { on_fetched(key, std::move(*shared)); });
      });
  if (!asked) sources_.erase(key);
}

void ps_shard_state::on_fetched(const segment_key& key, result<transport::segment> fetched) {
  const auto found = sources_.find(key);
  if (found == sources_.end()) return;
  auto& source = found->second;
  if (!fetched) {
    context_.log->warn("gradient-unreachable: worker {}: {}", source.worker, fetched.error().message);
    sources_.erase(found);
    return;
  }
  auto reader =
      transport::gradient_reader::open(std::move(*fetched), context_.job->model->layout().flat_size());
  if (!reader) {
    context_.log->warn("gradient-refused: worker {}: {}", source.worker, reader.error().message);
    sources_.erase(found);
    return;
  }
  const auto opened = std::make_shared<const transport::gradient_reader>(std::move(*reader));
  const auto waiting = std::exchange(source.waiting, {});
  if (client_->is_shared())
    source.reader = opened;
  else
    sources_.erase(found); // a copy is of one gradient, not of the next
  for (const auto& push : waiting) {
    if (core_->wants(push))
      accept(push, opened);
    else
      carry_out(core_->on_unusable_push(push));
  }
}

void ps_shard_state::accept(const protocol::push& push,
                            const std::shared_ptr<const transport::gradient_reader>& reader) {
  const auto expected = header_of(push);
  const auto whole = reader->view(expected);
  if (!whole) { // the buffer was reused: the message is an old one
    context_.log->info("push-outdated: worker {} step {}: {}", push.worker, push.step, whole.error().message);
    return carry_out(core_->on_unusable_push(push));
  }
  const value_id id{next_value_++};
  const auto floats = whole->subspan(range_.offset, range_.size);
  const auto intact = [reader, expected] { return reader->unchanged(expected); };
  values_thread_.run_later([values = values_, id, floats, reader, intact] {
    values->emplace(id, value{floats, reader, intact});
  });
  note_early(push, {floats, reader, intact, 0});
  carry_out(core_->on_push(push, id));
}

transport::gradient_header ps_shard_state::header_of(const protocol::push& push) const {
  return {.timeline = push.timeline,
          .worker = push.worker,
          .worker_incarnation = push.self.incarnation,
          .step = push.step,
          .slots_begin = push.slots.begin,
          .slots_end = push.slots.end,
          .records = push.records,
          .flat_size = context_.job->model->layout().flat_size(),
          .sequence = push.tensor_sequence};
}

void ps_shard_state::forget_sources(worker_id worker, dlrun::incarnation older_than) {
  std::erase_if(sources_, [&](const auto& entry) {
    return entry.second.worker == worker && entry.second.incarnation < older_than;
  });
  if (const auto found = workers_.find(worker);
      found != workers_.end() && found->second.incarnation < older_than)
    workers_.erase(found);
}

// ---- what others ask

protocol::shard_state ps_shard_state::current_state() const {
  auto state = core_->state();
  state.parameters = parameters_at_;
  return state;
}

protocol::shard_status ps_shard_state::current_status(std::uint64_t probe) {
  auto status = core_->status(probe);
  status.sequence = ++status_sequence_;
  status.has_metrics = metrics_.sums().has_value();
  status.metrics = metrics_.sums().value_or(protocol::training_metrics{});
  status.step_times = step_times_.quantiles();
  status.durable.replay_us = replay_us(status);
  if (!storage_) return status;
  const auto counters = storage_->counters();
  status.bytes_logged = counters.bytes_logged;
  status.bytes_snapshotted = counters.bytes_snapshotted;
  return status;
}

/// A shard that comes back reads and verifies all of its log and makes what is above its newest snapshot
/// again. Measured: a step takes about half as long to verify as to apply, and up to half as long again to
/// replay.
std::uint64_t ps_shard_state::replay_us(const protocol::shard_status& status) const {
  const auto& snapshots = status.durable.snapshots;
  const auto steps_above = [&](version_id base) {
    return static_cast<double>(status.applied.value - std::min(base.value, status.applied.value));
  };
  const auto replayed = steps_above(snapshots.empty() ? version_id{0} : snapshots.back());
  const auto kept =
      steps_above(snapshots.size() < 2 ? version_id{0} : snapshots[snapshots.size() - 2]); // R13
  return static_cast<std::uint64_t>(apply_us_ * (1.5 * replayed + 0.5 * kept));
}

void ps_shard_state::report_status() {
  if (!dispatcher_) return;
  status_sender_.send(self_, dispatcher_, current_status(0), [this] { report_status(); });
}

void ps_shard_state::report_alive() {
  const protocol::heartbeat beat{.role = context_.role,
                                 .self = context_.self,
                                 .state = !dispatcher_       ? "starting"
                                          : is_stalled()     ? "disk-full"
                                          : core_->trained() ? "done"
                                                             : "training",
                                 .step = core_->state().applied.value,
                                 .durable_step = storage_ ? storage_->newest().value : 0,
                                 .has_metrics = metrics_.sums().has_value(),
                                 .metrics = metrics_.sums().value_or(protocol::training_metrics{})};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, beat, [this](const auto& location) {
        common::follow_coordinator<protocol::ps_shard_actor>(
            self_, context_, location, endpoint_,
            [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
      });
}

caf::result<protocol::digest_reply>
ps_shard_state::on_digest_request(const protocol::digest_request& request) {
  const auto state = core_->state();
  if (request.timeline != state.timeline || request.version != state.applied)
    return caf::make_error(caf::sec::invalid_argument, "this shard stands at another version");
  if (request.count > protocol::digest_blocks_max)
    return caf::make_error(caf::sec::invalid_argument, "too many blocks in one request");
  auto promise = self_->make_response_promise<protocol::digest_reply>();
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([parameters = parameters_, request, promise, post]() {
    auto digests =
        std::make_shared<result<std::string>>(parameters->digests(request.first_block, request.count));
    post([request, promise, digests]() mutable {
      if (*digests)
        promise.deliver(protocol::digest_reply{request.first_block, std::move(**digests)});
      else
        promise.deliver(caf::make_error(caf::sec::invalid_argument, digests->error().message));
    });
  });
  return promise;
}

} // namespace dlrun::ps_shard
