/// What an archive of a run is made of: which snapshots, and what of the journal (rule R45).
#pragma once

#include "actors/protocol/timeline.hpp"
#include "proto/archive_record.pb.h"

#include <compare>
#include <dlrun/error.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::runtime {

/// Parts of R45 that its property test breaks on purpose, to see itself find them. Compiled out of
/// the product: only archive_mutant_test defines DLRUN_PLANTED_BUGS.
enum class archive_bug : std::uint8_t {
  none,
  journal_first, ///< the journal is read before the snapshots are kept, and not held against them
  left_timeline, ///< a snapshot counts though its timeline was left before it
  later_results, ///< results of evaluations beyond the archived version count
  newest_alone,  ///< what is still to be evaluated is not archived
};
#ifdef DLRUN_PLANTED_BUGS
constexpr bool is_planted(archive_bug configured, archive_bug bug) { return configured == bug; }
#else
constexpr bool is_planted(archive_bug, archive_bug) { return false; }
#endif

using journal_entries = std::map<std::string, std::string>;

/// A snapshot by the name of its file, "40-2.snap": version 40 of timeline 2.
struct snapshot_name {
  version_id version;
  timeline_id timeline;

  auto operator<=>(const snapshot_name&) const = default;
};
/// @returns nothing for the name of another file.
std::optional<snapshot_name> snapshot_named(std::string_view file);

/// Those of a PS shard, with the bytes of their files.
using stored_snapshots = std::map<snapshot_name, std::uint64_t>;

/// Pure: what is to be archived of the snapshots that each PS shard has, ascending: the newest that
/// all have, and below it those that all have of versions that are evaluated. Empty where they have
/// none in common.
std::vector<snapshot_name> choose_archived(const std::vector<stored_snapshots>& of_shards,
                                           const std::set<version_id>& evaluated,
                                           archive_bug bug = archive_bug::none);

/// What an archive has of the journal, beside snapshots that were kept from before it was read.
struct archived_journal {
  journal_entries entries;     ///< the course without later results, and for the report
  std::uint64_t coordinator{}; ///< highest incarnations that were issued
  std::uint64_t opener{};      ///< of PS shards
};

/// Pure. @param chosen not empty, as choose_archived()
/// @returns bad_usage, saying why, where a run cannot go on from these snapshots: they are of a
/// timeline that was left before them, or lack one whose evaluation has no result; storage_damaged
/// for entries that cannot be read.
result<archived_journal> archive_journal(const journal_entries& journal,
                                         const std::vector<snapshot_name>& chosen,
                                         const std::set<version_id>& evaluated,
                                         archive_bug bug = archive_bug::none);

/// A run that goes on from an archive, as it is before its first step.
struct continued_run {
  protocol::history history; ///< of all stores; the newest timeline is its own
  journal_entries journal;
  incarnation coordinator; ///< that has the journal; every later one is higher
  incarnation opener;      ///< of all stores
};
/// Pure: beyond all timelines and starts of the run that was lost, as without a journal (R20).
/// @param reached step that the lost run is known to have come to, for the report
/// @returns storage_damaged for entries that cannot be read.
result<continued_run> continue_from(const records::ArchiveRecord& archive, std::uint64_t reached);

} // namespace dlrun::runtime
