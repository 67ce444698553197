#include "actors/ps_shard/ps_shard.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/membership.hpp"
#include "kernels/cpu/reduce.hpp"

#include <bit>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
constexpr auto fetch_deadline = std::chrono::seconds(2);
/// Pushes that wait for one segment to be mapped; what is beyond is dropped, its sender repeats it.
constexpr std::size_t waiting_max = 64;

ps_shard_core_config core_config(const common::role_context& context) {
  const auto order = context.job->sampler;
  return {.self = {context.role.index},
          .fence = context.self,
          .ps_shards = context.job->ps_shards(),
          .steps = context.job->steps(),
          .slots_of = [order](step_id step) { return order.slots(step); },
          .records_of = [order](step_id step, slot_id slot) { return order.records_in_slot(step, slot); }};
}

} // namespace

ps_shard_state::behavior ps_shard_state::start(pointer self, common::role_context context) {
  self->state.role.reset(new ps_shard_state(self, std::move(context)));
  auto& role = *self->state.role;
  if (const auto ready = role.acquire(); !ready) role.quit(ready.error().message);
  return role.make_behavior();
}

ps_shard_state::ps_shard_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , core_{core_config(context_), restored_state{}}
    , range_{context_.job->shards.at(context_.role.index)} {}

result<void> ps_shard_state::acquire() {
  const auto& job = *context_.job;
  auto server = transport::segment_server::start({.token = job.run_token});
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  auto client = transport::segment_client::start({.token = job.run_token});
  if (!client) return tl::unexpected(client.error());
  client_ = std::move(*client);
  auto parameters = shard_parameters::create(job, {context_.role.index});
  if (!parameters) return tl::unexpected(parameters.error());
  parameters_ = std::make_shared<shard_parameters>(std::move(*parameters));
  const auto offered = server_->offer(parameters_->shared());
  if (!offered) return tl::unexpected(offered.error());
  parameters_at_ = {server_->address(), offered->value, parameters_->shared().size()};
  common::publish<protocol::ps_shard_actor>(self_, context_, server_->address(),
                                            [this](const protocol::endpoint& at) { on_published(at); });
  return {};
}

ps_shard_state::behavior ps_shard_state::make_behavior() {
  return {
      [this](const protocol::push& push) { on_push(push); },
      [this](const protocol::pull& pull, const protocol::worker_actor& from) { on_pull(pull, from); },
      [this](const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher) {
        on_directory(directory, dispatcher);
      },
      [this](const protocol::digest_request& request) { return on_digest_request(request); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

// ---- entering the job
// --------------------------------------------------------------------------------------------------

void ps_shard_state::on_published(const protocol::endpoint& at) {
  common::join_coordinator<protocol::ps_shard_actor>(
      self_, context_, at,
      [this](const auto& reply, const auto& dispatcher) { on_joined(reply, dispatcher); });
  self_->delayed_send(self_, tick_period, protocol::tick{});
}

void ps_shard_state::on_joined(const protocol::join_reply& reply,
                               const protocol::data_dispatcher_actor& dispatcher) {
  if (!reply.accepted) return quit(reply.reason);
  dispatcher_ = dispatcher;
  context_.log->info("joined: blocks [{}, {}), {} floats", range_.first_block, range_.last_block,
                     range_.size);
  report_status();
  report_alive();
}

void ps_shard_state::on_directory(const protocol::directory& directory,
                                  const protocol::data_dispatcher_actor& dispatcher) {
  if (directory.coordinator < directory_.coordinator || directory.sequence < directory_.sequence) return;
  directory_ = directory;
  dispatcher_ = dispatcher;
  for (const auto& entry : directory.entries)
    if (entry.role.kind == protocol::role_kind::worker) forget_sources({entry.role.index}, entry.incarnation);
  carry_out(core_.on_directory(directory));
}

void ps_shard_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  report_status();
  report_alive();
}

void ps_shard_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

// ---- pushes
// ------------------------------------------------------------------------------------------------------------

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
  attached = {pull.self.incarnation, from};
  carry_out(core_.on_pull(pull));
}

void ps_shard_state::on_push(const protocol::push& push) {
  if (!speaks_for_itself(push.worker, push.self)) {
    context_.log->warn("push-refused: worker {} does not know the token of incarnation {}", push.worker,
                       push.self.incarnation);
    return;
  }
  if (!core_.wants(push)) return carry_out(core_.on_unusable_push(push));
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
      key.first, {key.second}, push.where.bytes, std::chrono::steady_clock::now() + fetch_deadline,
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
  source.reader = std::make_shared<const transport::gradient_reader>(std::move(*reader));
  const auto waiting = std::exchange(source.waiting, {});
  const auto opened = source.reader;
  for (const auto& push : waiting) {
    if (core_.wants(push))
      accept(push, opened);
    else
      carry_out(core_.on_unusable_push(push));
  }
}

void ps_shard_state::accept(const protocol::push& push,
                            const std::shared_ptr<const transport::gradient_reader>& reader) {
  const transport::gradient_header expected{.timeline = push.timeline,
                                            .worker = push.worker,
                                            .worker_incarnation = push.self.incarnation,
                                            .step = push.step,
                                            .slots_begin = push.slots.begin,
                                            .slots_end = push.slots.end,
                                            .records = push.records,
                                            .flat_size = context_.job->model->layout().flat_size(),
                                            .sequence = push.tensor_sequence};
  const auto whole = reader->view(expected);
  if (!whole) { // the buffer was reused: the message is an old one
    context_.log->info("push-outdated: worker {} step {}: {}", push.worker, push.step, whole.error().message);
    return carry_out(core_.on_unusable_push(push));
  }
  const value_id id{next_value_++};
  values_thread_.run([values = values_, id, floats = whole->subspan(range_.offset, range_.size), reader,
                      expected] {
    values->emplace(id, value{floats, reader, [reader, expected] { return reader->unchanged(expected); }});
  });
  carry_out(core_.on_push(push, id));
}

void ps_shard_state::forget_sources(worker_id worker, dlrun::incarnation older_than) {
  std::erase_if(sources_, [&](const auto& entry) {
    return entry.second.worker == worker && entry.second.incarnation < older_than;
  });
  if (const auto found = workers_.find(worker);
      found != workers_.end() && found->second.incarnation < older_than)
    workers_.erase(found);
}

// ---- what the core decided
// ---------------------------------------------------------------------------------------------

void ps_shard_state::carry_out(const ps_shard_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

void ps_shard_state::carry_out(const combine& action) {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([this, values = values_, action, size = range_.size, post] {
    const auto left = values->extract(action.left);
    const auto right = values->extract(action.right);
    DLRUN_CHECK(left && right, "the core combines values that are there");
    auto sum = std::make_shared<std::vector<float>>(size);
    kernels::cpu::add(left.mapped().floats, right.mapped().floats, *sum);
    for (const auto* part : {&left.mapped(), &right.mapped()})
      if (part->intact && !part->intact())
        post([this] { lose_trust("a gradient changed while it was summed"); });
    values->emplace(action.into, value{*sum, sum, nullptr});
  });
}

void ps_shard_state::carry_out(const release& action) {
  values_thread_.run([values = values_, action] { values->erase(action.value); });
}

void ps_shard_state::carry_out(const apply& action) {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run(
      [this, values = values_, parameters = parameters_, action, timeline = core_.state().timeline, post] {
        const auto root = values->find(action.root);
        DLRUN_CHECK(root != values->end(), "the core applies a root that is there");
        const auto made = parameters->apply(timeline, action.step, root->second.floats, root->second.intact);
        post([this, action, made] {
          if (made)
            on_applied(action.step, *made);
          else
            lose_trust(made.error().message);
        });
      });
}

/// A worker reuses a buffer only when this shard has applied its step. So the one that is wrong here is this
/// start: it was taken for dead and replaced while it was stopped, and nothing it has may be published.
void ps_shard_state::lose_trust(const std::string& why) { quit("overtaken: " + why); }

void ps_shard_state::on_applied(step_id step, const std::optional<step_metrics>& metrics) {
  if (metrics) {
    const auto epoch = context_.job->sampler.epoch_of(step);
    if (!has_metrics_ || epoch != metrics_.epoch) metrics_ = {.epoch = epoch};
    has_metrics_ = true;
    metrics_.loss_sum_bits =
        std::bit_cast<std::uint64_t>(std::bit_cast<double>(metrics_.loss_sum_bits) + metrics->loss_sum);
    metrics_.correct += metrics->correct;
    metrics_.records += metrics->records;
    metrics_.step_loss_bits =
        std::bit_cast<std::uint64_t>(metrics->loss_sum / static_cast<double>(metrics->records));
  }
  const auto contributions = core_.contributions();
  carry_out(core_.on_applied(step));
  if (core_.trained() || contributions != core_.contributions()) report_status();
}

void ps_shard_state::carry_out(const publish&) {
  for (const auto& [worker, attached] : workers_) self_->send(attached.handle, current_state());
}

void ps_shard_state::carry_out(const send_state& action) {
  if (const auto found = workers_.find(action.to); found != workers_.end())
    self_->send(found->second.handle, current_state());
}

void ps_shard_state::carry_out(const send_fenced& action) {
  context_.log->info("fenced-worker: worker {} speaks under an old incarnation, the newest is {}", action.to,
                     action.newest);
  if (const auto found = workers_.find(action.to); found != workers_.end())
    self_->send(found->second.handle, protocol::fenced{protocol::worker_role(action.to), action.newest});
}

void ps_shard_state::carry_out(const exit_fenced& action) {
  quit(fmt::format("fenced: incarnation {} of ps_shard {} exists", action.newest, context_.role.index));
}

// ---- what others ask
// ---------------------------------------------------------------------------------------------------

protocol::shard_state ps_shard_state::current_state() const {
  auto state = core_.state();
  state.parameters = parameters_at_;
  return state;
}

void ps_shard_state::report_status() {
  if (!dispatcher_) return;
  const auto state = core_.state();
  protocol::shard_status status{.shard = state.shard,
                                .self = context_.self,
                                .sequence = ++status_sequence_,
                                .timeline = state.timeline,
                                .applied = state.applied,
                                .committed = state.committed,
                                .ledger = core_.applied().totals(),
                                .has_metrics = has_metrics_,
                                .metrics = metrics_,
                                .contributions = core_.contributions()};
  status_sender_.send(self_, dispatcher_, std::move(status), [this] { report_status(); });
}

void ps_shard_state::report_alive() {
  const protocol::heartbeat beat{.role = context_.role,
                                 .self = context_.self,
                                 .state = !dispatcher_      ? "starting"
                                          : core_.trained() ? "done"
                                                            : "training",
                                 .step = core_.state().applied.value,
                                 .has_metrics = has_metrics_,
                                 .metrics = metrics_};
  heartbeat_sender_.send(self_, context_.agent, beat, [] {});
}

caf::result<protocol::digest_reply>
ps_shard_state::on_digest_request(const protocol::digest_request& request) {
  const auto state = core_.state();
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
