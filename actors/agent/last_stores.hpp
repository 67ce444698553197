/// What the stores of a job that is complete hold (rules R19, R38).
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>

namespace dlrun::agent {

/// The last version, which they have (R19).
struct last_stores {
  std::uint32_t ps_shards = 1;
  version_id version{};   ///< its last one
  timeline_id timeline{}; ///< of that, or one before it
};
/// @param store null: none
inline bool holds(const protocol::held_store* store, const last_stores& last) {
  return store != nullptr && store->timeline >= last.timeline && store->end.value >= last.version.value;
}

} // namespace dlrun::agent
