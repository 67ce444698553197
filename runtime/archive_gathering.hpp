/// What the next archive is made of, while the job runs (rule R45).
#pragma once

#include "runtime/archive_source.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::runtime {

struct gathered_archive {
  std::vector<snapshot_name> chosen; ///< ascending; kept at the source until it is told otherwise
  std::uint64_t bytes = 0;           ///< of all of them, of all PS shards
  archived_journal journal{};
};

/// Keeps the snapshots first, and reads the journal afterwards: what happens in between may make
/// the archive impossible, and never wrong.
/// @param newest what the newest archive goes on from
/// @returns nothing where there is nothing newer; errors as the source and archive_journal().
result<std::optional<gathered_archive>> gather_archive(archive_source& source,
                                                       const std::set<version_id>& evaluated,
                                                       std::optional<snapshot_name> newest,
                                                       archive_bug bug = archive_bug::none);

} // namespace dlrun::runtime
