/// The evaluation half of a worker: on a thread of its own, while training goes on (R17).
#include "actors/common/clock.hpp"
#include "actors/worker/worker.hpp"
#include "transport/frozen_parameters.hpp"

namespace dlrun::worker {
namespace {

constexpr auto snapshot_deadline = std::chrono::seconds(2);

} // namespace

/// Its threads finish what they have in hand, for which they may have to enter.
worker_state::~worker_state() {
  if (cancelled_) *cancelled_ = true;
  self_->entry().outside([this] {
    compute_thread_.stop();
    evaluation_thread_.stop();
  });
}

void worker_state::on_evaluate(const protocol::evaluate& order) {
  if (evaluator_) carry_out(evaluation_.on_order(order, core_.timeline()));
}

void worker_state::carry_out(const evaluation_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

/// Where nothing is kept on disk only the last version is evaluated, which its shards serve to the
/// end.
void worker_state::carry_out(const get_snapshot_part& action) {
  auto& link = shards_[action.shard];
  if (context_.job->durability() != protocol::durability::off) {
    if (link.handle)
      self_->send(link.handle,
                  protocol::snapshot_request{
                      action.of.timeline, action.of.version, {context_.role.index}, context_.self},
                  caf::actor_cast<protocol::worker_actor>(self_));
    return;
  }
  if (link.source) return take_last_version(action, link.source);
  link.waiting_evaluation = action;
  map_parameters(action.shard);
}

/// If that is not the version that is wanted, the order is repeated.
void worker_state::take_last_version(const get_snapshot_part& action, const parameter_source& source) {
  take_part(action, [source, action](std::span<float> into) -> result<void> {
    if (source->copy(action.of.timeline, action.of.version, into)) return {};
    return fail(error_code::role_lost,
                fmt::format("ps_shard {} does not serve version {}", action.shard, action.of.version));
  });
}

void worker_state::on_snapshot_offer(const protocol::snapshot_offer& offer) {
  const get_snapshot_part part{offer.shard, {offer.timeline, offer.version}};
  if (!evaluation_.wants(part.shard, part.of) || !mapping_snapshots_.insert(part.shard).second) return;
  const auto floats = context_.job->shards.at(part.shard.value).size;
  const auto post = common::poster<protocol::worker_actor>{self_};
  const auto asked =
      client_->fetch(offer.where.address, {offer.where.segment}, transport::frozen_parameters_bytes(floats),
                     transport::frozen_part(floats), std::chrono::steady_clock::now() + snapshot_deadline,
                     [this, post, part](result<transport::segment> fetched) {
                       auto shared = std::make_shared<result<transport::segment>>(std::move(fetched));
                       post([this, part, shared] { on_snapshot_mapped(part, shared); });
                     });
  if (!asked) mapping_snapshots_.erase(part.shard);
}

void worker_state::on_snapshot_mapped(const get_snapshot_part& part,
                                      const std::shared_ptr<result<transport::segment>>& mapped) {
  mapping_snapshots_.erase(part.shard);
  if (!*mapped) {
    context_.log->info("snapshot-unreachable: ps_shard {}: {}; asking again", part.shard,
                       mapped->error().message);
    return;
  }
  if (!evaluation_.wants(part.shard, part.of)) return;
  take_part(part, [mapped, part](std::span<float> into) -> result<void> {
    const auto values =
        transport::frozen_parameters(**mapped, into.size(), part.of.timeline, part.of.version);
    if (!values) return tl::unexpected(values.error());
    std::ranges::copy(*values, into.begin());
    return {};
  });
}

/// Tasks of the evaluation thread run in the order given: what is copied is there before it is
/// evaluated.
void worker_state::take_part(const get_snapshot_part& part,
                             std::function<result<void>(std::span<float>)> copy) {
  const auto post = common::poster<protocol::worker_actor>{self_};
  evaluation_thread_.run([this, evaluator = evaluator_, part, copy = std::move(copy), post] {
    const auto copied = copy(evaluator->part_of(part.shard));
    post([this, part, copied] {
      if (copied) return carry_out(evaluation_.on_part(part.shard, part.of));
      context_.log->info("snapshot-refused: {}", copied.error().message);
    });
  });
}

void worker_state::carry_out(const run_evaluation& action) {
  context_.log->info("evaluation: of version {}", action.of.version);
  cancelled_ = std::make_shared<std::atomic<bool>>(false);
  const auto post = common::poster<protocol::worker_actor>{self_};
  evaluation_thread_.run([this, evaluator = evaluator_, action, cancelled = cancelled_, post] {
    const auto made = std::make_shared<result<protocol::evaluated>>(evaluator->run(action.of, *cancelled));
    post([this, action, made] { on_evaluated(action, *made); });
  });
}

/// Whoever evaluates meets the same records: starting anew does not help.
void worker_state::on_evaluated(const run_evaluation& what, const result<protocol::evaluated>& made) {
  if (!made && made.error().code == error_code::bad_data) {
    unusable_data_ = {
        protocol::job_outcome::failed,
        fmt::format("version {} cannot be evaluated: {}", what.of.version, made.error().message),
        error_code::bad_data};
    context_.log->error("unusable-data: {}", unusable_data_->reason);
    return self_->send(context_.agent, *unusable_data_);
  }
  if (!made && made.error().code != error_code::interrupted)
    return quit(fmt::format("cannot evaluate version {}: {}", what.of.version, made.error().message));
  carry_out(evaluation_.on_result(made ? std::optional(*made) : std::nullopt));
}

void worker_state::carry_out(const cancel_evaluation&) { *cancelled_ = true; }

void worker_state::carry_out(const send_evaluated& action) {
  if (dispatcher_) self_->send(dispatcher_, action.result);
}

} // namespace dlrun::worker
