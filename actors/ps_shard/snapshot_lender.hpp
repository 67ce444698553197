/// What a PS shard hands out of its snapshots, to workers that evaluate them (R17).
#pragma once

#include "actors/protocol/handles.hpp"
#include "actors/protocol/time.hpp"
#include "transport/frozen_parameters.hpp"
#include "transport/tensor_channel.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <spdlog/logger.h>

namespace dlrun::ps_shard {

/// Lends the parameters of one snapshot at a time, the same segment to everybody who asks, and
/// withdraws it when nobody has asked for a while. Called by its owner only.
class snapshot_lender {
public:
  using frozen = result<transport::frozen_parameters_writer>;
  struct links {
    /// Reads the snapshot's parameters into a segment; `done` is called at the owner.
    std::function<void(timeline_id, version_id, std::function<void(const frozen&)> done)> read;
    std::function<void(const protocol::worker_actor&, const protocol::snapshot_offer&)> send;
    /// The snapshot is damaged, and dropped: this start of the shard is over.
    std::function<void(const std::string& why)> quit;
  };

  /// Of `shard`, which has `floats` floats.
  snapshot_lender(ps_shard_id shard, std::uint64_t floats, std::shared_ptr<transport::segment_offers> server,
                  std::shared_ptr<spdlog::logger> log, links out);

  /// `request` is for a snapshot that is there. While one is being read nobody gets an answer, but
  /// for the one who asked for it first when it is read: all ask again.
  void on_request(const protocol::snapshot_request& request, const protocol::worker_actor& from,
                  protocol::time_point now);
  void withdraw_unused(protocol::time_point now);

private:
  struct lent {
    timeline_id timeline;
    version_id version;
    protocol::time_point asked{};
    std::optional<transport::segment_id> segment; ///< none while it is read
  };

  void on_read(const protocol::snapshot_request& request, const protocol::worker_actor& from,
               const frozen& read);
  void offer(const protocol::worker_actor& to) const;

  ps_shard_id shard_;
  std::uint64_t floats_;
  std::shared_ptr<transport::segment_offers> server_;
  std::shared_ptr<spdlog::logger> log_;
  links out_;
  std::optional<lent> lent_;
};

} // namespace dlrun::ps_shard
