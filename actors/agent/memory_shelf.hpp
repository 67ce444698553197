/// Memory that PS shards of this host left behind (rule R36).
#pragma once

#include "actors/common/retained_memory.hpp"

#include <cstdint>
#include <map>
#include <memory>

namespace dlrun::agent {

/// Of each PS shard, what its next start on this host may begin with. Not thread-safe. What it
/// returns of memory is the caller's to release: that may take a while.
class memory_shelf {
public:
  using memory = std::shared_ptr<const common::retained_memory>;

  /// For the next start of that PS shard; null when there is nothing. What some starts in a row got
  /// and made nothing of is given to no more: it may be why they end.
  memory take(std::uint32_t shard);
  /// A start of it is over, and this was its memory: it is kept if it holds the newest version, but
  /// not when memory had run out, which is needed more than the steps that it saves.
  [[nodiscard]] memory put(std::uint32_t shard, memory left, bool out_of_memory);
  /// Whether something is there for the next start of it.
  bool holds(std::uint32_t shard) const;
  /// A start that runs holds a version itself. @returns what is of no use any more, or null.
  [[nodiscard]] memory drop(std::uint32_t shard);

private:
  struct kept_memory {
    memory of; ///< null once it was dropped
    transport::whole_version newest;
    int times_given = 0;
  };

  std::map<std::uint32_t, kept_memory> kept_;
};

} // namespace dlrun::agent
