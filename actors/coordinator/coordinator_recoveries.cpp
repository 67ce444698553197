/// What the coordinator tells of losses that are made good.
#include "actors/common/clock.hpp"
#include "actors/coordinator/coordinator.hpp"

#include <algorithm>

namespace dlrun::coordinator {
namespace {

/// What a loss that was noticed so long ago has come to.
protocol::event_numbers after_loss(protocol::duration time) {
  return {.after_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()))};
}

} // namespace

void coordinator_state::on_redispatched(const protocol::slots_redispatched& what) {
  core_->recoveries().on_redispatched(what.lost, what.incarnation, protocol::duration{what.after_us});
  tell_user("slots-redispatched", protocol::worker_role(what.lost), what.incarnation,
            fmt::format("slots of worker {} are with others after {:.1f} ms", what.lost,
                        static_cast<double>(what.after_us) / 1000.0),
            {.after_us = what.after_us});
}

void coordinator_state::on_contributed(const protocol::worker_contributed& what) {
  const auto& first = what.what;
  const auto made_good =
      core_->recoveries().on_resumed(protocol::worker_role(first.worker), first.incarnation, common::now());
  for (const auto& record : made_good)
    tell_user("worker-resumed", record.role, first.incarnation,
              fmt::format("worker {} contributes again from step {}, {:.0f} ms after the loss", first.worker,
                          first.step, std::chrono::duration<double, std::milli>(*record.resumed).count()),
              after_loss(*record.resumed));
}

void coordinator_state::on_shard_resumed(const protocol::ps_shard_resumed& what) {
  const auto made_good =
      core_->recoveries().on_resumed(protocol::ps_shard_role(what.shard), what.incarnation, common::now());
  for (const auto& record : made_good)
    tell_user("ps-shard-resumed", record.role, what.incarnation,
              fmt::format("ps_shard {} has made version {}, {:.0f} ms after the loss", what.shard,
                          what.version, std::chrono::duration<double, std::milli>(*record.resumed).count()),
              after_loss(*record.resumed));
}

} // namespace dlrun::coordinator
