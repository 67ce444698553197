#include "actors/worker/evaluations.hpp"

#include "transport/frozen_parameters.hpp"

#include <algorithm>

namespace dlrun::worker {
namespace {

constexpr auto snapshot_deadline = std::chrono::seconds(2);

} // namespace

evaluations::evaluations(const common::role_context& context, transport::segment_fetches& client, links asked)
    : context_(context)
    , client_(client)
    , asked_(std::move(asked))
    , core_(context.job->ps_shards()) {}

result<void> evaluations::open() {
  if (!context_.job->spec.data().has_validation()) return {};
  auto made = evaluator::create(context_.job, {context_.role.index}, context_.self.incarnation);
  if (!made) return tl::unexpected(made.error());
  evaluator_ = std::move(*made);
  return {};
}

void evaluations::stop() {
  if (cancelled_) *cancelled_ = true;
  thread_.stop();
}

void evaluations::on_order(const protocol::evaluate& order, timeline_id current) {
  if (evaluator_) carry_out(core_.on_order(order, current));
}

void evaluations::carry_out(const evaluation_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

// ---- the parameters of a version

/// If what is served of the last version is another one, the order is repeated.
void evaluations::carry_out(const get_snapshot_part& action) {
  if (context_.job->durability() != protocol::durability::off)
    return asked_.request(action.shard,
                          {action.of.timeline, action.of.version, {context_.role.index}, context_.self});
  asked_.get_parameters(action.shard, [this, action](const parameter_source& source) {
    if (!source) return;
    take_part(action, [source, action](std::span<float> into) -> result<void> {
      if (source->copy(action.of.timeline, action.of.version, into)) return {};
      return fail(error_code::role_lost,
                  fmt::format("ps_shard {} does not serve version {}", action.shard, action.of.version));
    });
  });
}

void evaluations::on_offer(const protocol::snapshot_offer& offer) {
  const get_snapshot_part part{offer.shard, {offer.timeline, offer.version}};
  if (!core_.wants(part.shard, part.of) || !mapping_.insert(part.shard).second) return;
  const auto floats = context_.job->shards.at(part.shard.value).size;
  const auto asked =
      client_.fetch(offer.where.address, {offer.where.segment}, transport::frozen_parameters_bytes(floats),
                    transport::frozen_part(floats), std::chrono::steady_clock::now() + snapshot_deadline,
                    [this, post = asked_.back.post, part](result<transport::segment> fetched) {
                      auto shared = std::make_shared<const result<transport::segment>>(std::move(fetched));
                      post([this, part, shared] { on_mapped(part, shared); });
                    });
  if (!asked) mapping_.erase(part.shard);
}

void evaluations::on_mapped(const get_snapshot_part& part,
                            const std::shared_ptr<const result<transport::segment>>& mapped) {
  mapping_.erase(part.shard);
  if (!*mapped) {
    context_.log->info("snapshot-unreachable: ps_shard {}: {}; asking again", part.shard,
                       mapped->error().message);
    return;
  }
  if (!core_.wants(part.shard, part.of)) return;
  take_part(part, [mapped, part](std::span<float> into) -> result<void> {
    const auto values =
        transport::frozen_parameters(**mapped, into.size(), part.of.timeline, part.of.version);
    if (!values) return tl::unexpected(values.error());
    std::ranges::copy(*values, into.begin());
    return {};
  });
}

/// Tasks of the thread run in the order given: what is copied is there before it is evaluated.
void evaluations::take_part(const get_snapshot_part& part,
                            std::function<result<void>(std::span<float>)> copy) {
  thread_.run([this, evaluator = evaluator_, part, copy = std::move(copy)] {
    const auto copied = copy(evaluator->part_of(part.shard));
    asked_.back.post([this, part, copied] {
      if (copied) return carry_out(core_.on_part(part.shard, part.of));
      context_.log->info("snapshot-refused: {}", copied.error().message);
    });
  });
}

// ---- the evaluation

void evaluations::carry_out(const run_evaluation& action) {
  context_.log->info("evaluation: of version {}", action.of.version);
  cancelled_ = std::make_shared<std::atomic<bool>>(false);
  thread_.run([this, evaluator = evaluator_, action, cancelled = cancelled_] {
    const auto made = std::make_shared<result<protocol::evaluated>>(evaluator->run(action.of, *cancelled));
    asked_.back.post([this, action, made] { on_evaluated(action, *made); });
  });
}

void evaluations::on_evaluated(const run_evaluation& what, const result<protocol::evaluated>& made) {
  if (!made && made.error().code == error_code::bad_data)
    return asked_.unusable(
        {protocol::job_outcome::failed,
         fmt::format("version {} cannot be evaluated: {}", what.of.version, made.error().message),
         error_code::bad_data});
  if (!made && made.error().code != error_code::interrupted) {
    const bool is_gpu = context_.job->gpus.cuda != nullptr && made.error().code == error_code::system;
    if (is_gpu && context_.progress != nullptr) context_.progress->note_gpu_failure();
    return asked_.failed(
        fmt::format("cannot evaluate version {}: {}", what.of.version, made.error().message));
  }
  carry_out(core_.on_result(made ? std::optional(*made) : std::nullopt));
}

void evaluations::carry_out(const cancel_evaluation&) { *cancelled_ = true; }

} // namespace dlrun::worker
