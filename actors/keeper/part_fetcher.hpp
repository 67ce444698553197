/// Gets the bytes of parts from the memory of the PS shard, over the tensor channel.
#pragma once

#include "actors/keeper/store_mirror.hpp"
#include "transport/tensor_channel.hpp"

#include <memory>

namespace dlrun::keeper {

/// Asks for the bytes of a part when its message comes, so that they are on their way while those
/// of parts before it are written. What is on the way, and what has come and is not written yet, is
/// bounded, whatever a PS shard says. Thread-safe as its channel is; called by one actor.
class part_fetcher {
public:
  /// Twice as many as a PS shard may send: those of a stream that is over may still be on the way.
  static constexpr std::size_t parts_max = 16;

  explicit part_fetcher(std::unique_ptr<transport::segment_fetches> channel);
  /// Whoever waits for bytes is told that they do not come.
  ~part_fetcher();

  /// The bytes once they are there: they are the caller's own, and nobody has looked at them. Parts
  /// that say too much, or are too many, are not asked for, and whoever waits for them is told.
  part_bytes fetch(const protocol::copy_part& part);

private:
  struct arrival;
  result<void> check(const protocol::copy_part& part) const;

  std::shared_ptr<const void> place_; ///< each part on the way has a share of it
  std::unique_ptr<transport::segment_fetches> channel_;
};

} // namespace dlrun::keeper
