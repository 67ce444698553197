#include "actors/ps_shard/snapshot_lender.hpp"

namespace dlrun::ps_shard {
namespace {

/// A worker that maps what it was offered takes tens of milliseconds; one that is late asks again.
constexpr auto offer_patience = std::chrono::seconds(5);

} // namespace

snapshot_lender::snapshot_lender(ps_shard_id shard, std::uint64_t floats,
                                 std::shared_ptr<transport::segment_offers> server,
                                 std::shared_ptr<spdlog::logger> log, links out)
    : shard_(shard)
    , floats_(floats)
    , server_(std::move(server))
    , log_(std::move(log))
    , out_(std::move(out)) {}

void snapshot_lender::on_request(const protocol::snapshot_request& request,
                                 const protocol::worker_actor& from, protocol::time_point now) {
  if (lent_ && lent_->timeline == request.timeline && lent_->version == request.version) {
    lent_->asked = now;
    if (lent_->segment) offer(from);
    return;
  }
  if (lent_ && !lent_->segment) return;
  if (lent_) server_->withdraw(*lent_->segment);
  lent_ = lent{request.timeline, request.version, now, std::nullopt};
  out_.read(request.timeline, request.version,
            [this, request, from](const frozen& read) { on_read(request, from, read); });
}

void snapshot_lender::on_read(const protocol::snapshot_request& request, const protocol::worker_actor& from,
                              const frozen& read) {
  if (!read && read.error().code == error_code::storage_damaged)
    return out_.quit(read.error().message + ": it is dropped, and made again if the log has it");
  const auto segment =
      read ? server_->offer(read->shared()) : result<transport::segment_id>{tl::unexpected(read.error())};
  if (!segment) {
    log_->warn("snapshot-unreadable: version {}: {}", request.version, segment.error().message);
    return lent_.reset(); // asked for again
  }
  lent_->segment = *segment;
  offer(from);
}

void snapshot_lender::offer(const protocol::worker_actor& to) const {
  const auto bytes = transport::frozen_parameters_bytes(floats_);
  out_.send(to,
            {shard_, lent_->timeline, lent_->version, {server_->address(), lent_->segment->value, bytes}});
}

void snapshot_lender::withdraw_unused(protocol::time_point now) {
  if (!lent_ || !lent_->segment || now - lent_->asked < offer_patience) return;
  server_->withdraw(*lent_->segment);
  lent_.reset();
}

} // namespace dlrun::ps_shard
