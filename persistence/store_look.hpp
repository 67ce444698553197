/// What a store is and holds, in a few numbers: for whoever has to choose between several stores of
/// one PS shard.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <string>

namespace dlrun::persistence {

struct store_summary {
  incarnation opener;         ///< who opened it last
  timeline_id timeline;       ///< its newest
  step_id end;                ///< of its log, or the version of its newest snapshot where that is above
  std::uint64_t identity = 0; ///< 0: the next opening gives it another one (R24), as far as a look sees that
  version_id floor;           ///< what is below may have been dropped
};

/// Says what a store holds that nobody has open; writes nothing. Unlike open() it reads neither
/// payloads nor snapshots, so a damaged store may hold less than this says. @param run number of
/// the
/// run that it is to be of; 0: of any  @returns bad_usage when there is no store of that run, in_use
/// while somebody has it open, storage_damaged.
result<store_summary> look_at_store(const std::string& directory, std::uint64_t run = 0);

} // namespace dlrun::persistence
