/// What a PS shard hands out of its snapshots (R17).
#include "actors/common/clock.hpp"
#include "actors/ps_shard/ps_shard.hpp"

namespace dlrun::ps_shard {
namespace {

/// A worker that maps what it was offered takes tens of milliseconds; one that is late asks again.
constexpr auto offer_patience = std::chrono::seconds(5);

} // namespace

/// The same for everybody who asks. While one is being read nobody gets another; they ask again.
void ps_shard_state::on_snapshot_request(const protocol::snapshot_request& request,
                                         const protocol::worker_actor& from) {
  if (!storage_ || !speaks_for_itself(request.worker, request.self) ||
      !core_->has_snapshot(request.timeline, request.version))
    return;
  if (offered_ && offered_->timeline == request.timeline && offered_->version == request.version) {
    offered_->asked = common::now();
    if (!offered_->segment) return; // being read: the one who asked first is told, others ask again
    const auto bytes = transport::frozen_parameters_bytes(range_.size);
    return self_->send(from, protocol::snapshot_offer{{context_.role.index},
                                                      request.timeline,
                                                      request.version,
                                                      {server_->address(), offered_->segment->value, bytes}});
  }
  if (offered_ && !offered_->segment) return;
  if (offered_) server_->withdraw(*offered_->segment);
  offered_ = offered_snapshot{request.timeline, request.version, common::now(), std::nullopt};
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  storage_->freeze(parameters_, request.timeline, request.version,
                   [this, post, request, from](result<transport::frozen_parameters_writer> frozen) {
                     auto shared =
                         std::make_shared<result<transport::frozen_parameters_writer>>(std::move(frozen));
                     post([this, request, from, shared] { on_frozen(request, from, *shared); });
                   });
}

void ps_shard_state::on_frozen(const protocol::snapshot_request& request, const protocol::worker_actor& from,
                               const result<transport::frozen_parameters_writer>& frozen) {
  if (!frozen && frozen.error().code == error_code::storage_damaged)
    return quit(frozen.error().message + ": it is dropped, and made again if the log has it");
  const auto segment = frozen ? server_->offer(frozen->shared())
                              : result<transport::segment_id>{tl::unexpected(frozen.error())};
  if (!segment) {
    context_.log->warn("snapshot-unreadable: version {}: {}", request.version, segment.error().message);
    return offered_.reset(); // asked for again
  }
  offered_->segment = *segment;
  on_snapshot_request(request, from);
}

void ps_shard_state::withdraw_unused_snapshot() {
  if (!offered_ || !offered_->segment || common::now() - offered_->asked < offer_patience) return;
  server_->withdraw(*offered_->segment);
  offered_.reset();
}

} // namespace dlrun::ps_shard
