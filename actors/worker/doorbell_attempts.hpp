/// At which start of each PS shard a worker has a doorbell, and when it asks for one again.
#pragma once

#include "actors/protocol/time.hpp"

#include <dlrun/ids.hpp>
#include <map>

namespace dlrun::worker {

/// Pure: decides when to ask a PS shard for a doorbell: the newest start that has spoken, one
/// attempt at a time.
class doorbell_attempts {
public:
  /// From the end of an attempt to the next, whatever came of the first: what is lost, or refused,
  /// goes by messages meanwhile. Larger: a shard that lost its doorbell is slower for longer;
  /// smaller: one that refuses it is asked more often for nothing.
  static constexpr protocol::duration pause = std::chrono::seconds(1);

  /// That start has spoken. @returns false for one that a newer one has replaced.
  bool follow(ps_shard_id shard, incarnation start);
  /// @returns whether to ask the shard's newest start for a doorbell now, which it has none of.
  /// on_connected() or on_failed() must follow.
  bool begin(ps_shard_id shard, protocol::time_point now);
  // What came of an attempt, or of the doorbell. Of a start that a newer one has replaced it means
  // nothing.
  void on_connected(ps_shard_id shard, incarnation start, protocol::time_point now);
  void on_failed(ps_shard_id shard, incarnation start, protocol::time_point now);
  void on_lost(ps_shard_id shard, incarnation start);

private:
  enum class state : std::uint8_t { none, connecting, connected };
  struct doorbell {
    dlrun::incarnation start; ///< what all below is about
    state is = state::none;
    protocol::time_point again{}; ///< not before
  };

  void end(ps_shard_id shard, incarnation start, state as, protocol::time_point again);

  std::map<ps_shard_id, doorbell> all_;
};

} // namespace dlrun::worker
