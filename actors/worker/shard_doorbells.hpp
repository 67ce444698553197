/// How a worker and the PS shards of its host speak without messages.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/common/way_back.hpp"
#include "actors/protocol/step_packets.hpp"
#include "actors/worker/doorbell_attempts.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

namespace dlrun::worker {

/// A doorbell at each PS shard: gradients are pushed through it, and where the shard stands comes
/// back, from the compute thread to the value thread of the shard and back. While there is none,
/// messages say the same. Called inside the entry lock of its owner.
class shard_doorbells {
public:
  using bell = std::shared_ptr<const transport::doorbell>;
  struct links {
    common::way_back back;
    /// Hears a doorbell on the compute thread.
    std::function<result<void>(bell, common::task_thread::listener)> listen;
    /// A shard said where it stands; on the compute thread, inside the entry lock.
    std::function<void(const protocol::shard_state&)> heard;
  };

  /// `context` and `client` outlive this. `tensor_address` is the worker's own,
  /// for processes of its host.
  shard_doorbells(const common::role_context& context, transport::segment_fetches& client,
                  std::string tensor_address, links asked);

  /// What a message says: it is told of newer starts and timelines, which the packets do not name.
  void follow(const protocol::shard_state& state);
  /// @returns false where the message must be sent.
  bool ring(ps_shard_id shard, const protocol::push& push) const;
  /// PS shards may begin with what is there of a gradient that is still computed: from float `from`
  /// on. What is lost is not repeated: the push says it all.
  void tell_part(const protocol::push& push, std::uint64_t from) const;

private:
  struct shard_bell {
    protocol::shard_state told; ///< by message, of the newest start and timeline: packets say the rest
    bell doorbell;              ///< at that start, or null
  };

  void connect(ps_shard_id shard, incarnation start, const std::string& address);
  void on_connected(ps_shard_id shard, incarnation start, result<std::unique_ptr<transport::doorbell>> made);
  result<bell> open(ps_shard_id shard, incarnation start, result<std::unique_ptr<transport::doorbell>> made);
  bool on_packet(ps_shard_id shard, incarnation start, std::optional<std::span<const std::byte>> packet);

  const common::role_context& context_;
  transport::segment_fetches& client_;
  std::string tensor_address_;
  links asked_;
  doorbell_attempts attempts_;
  std::map<ps_shard_id, shard_bell> bells_;
};

} // namespace dlrun::worker
