/// What the coordinator keeps in the journal, and how (docs/formats.md).
#pragma once

#include "actors/common/job_journal.hpp"
#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/coordinator/coordinator_core_config.hpp"
#include "actors/coordinator/store_book.hpp"
#include "persistence/journal.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace dlrun::coordinator {

using journal_entries = std::map<std::string, std::string>;

/// What a new start of the coordinator begins with. @returns storage_damaged for an entry that
/// cannot be read.
result<journaled_job> read_job(const journal_entries& entries);

/// The same of a run whose PS shards have stores in `run_dir`: they tell what a journal has lost
/// (R20). `has_begun`: the run is known to have had a coordinator before, whose stores may be on
/// other hosts. May block for a second.
result<journaled_job> find_job(const journal_entries& entries, const std::filesystem::path& run_dir,
                               std::uint32_t ps_shards, bool has_begun = false);

/// The results that count, ascending by version, by the dispatcher's course.
std::vector<protocol::evaluated> read_evaluations(const journal_entries& entries);

/// The slots that are left out of the training, by the dispatcher's course.
std::vector<protocol::parked_slot> read_parked(const journal_entries& entries);

/// What is known of the stores of PS shards. What cannot be read is left out: nothing is held
/// against it then.
store_book::stores read_stores(const journal_entries& entries);

std::vector<persistence::journal_write> to_writes(const journal_fences& order);
/// @param report as the root was given it, for a root that has lost it; "": none, or it has the
/// journal in the same folder. One too large for a write is left out.
std::vector<persistence::journal_write> to_writes(const journal_end& order, const std::string& report = {});
std::vector<persistence::journal_write> to_writes(const journal_workers& order);
std::vector<persistence::journal_write>
to_writes(const std::vector<std::pair<ps_shard_id, known_store>>& stores);

/// R20: the highest incarnation under which a PS shard has opened its store. One that is held by a
/// live process tells its own when it is heard of; what cannot be read says nothing. May block for
/// a second.
incarnation highest_opener(const std::filesystem::path& run_dir, std::uint32_t ps_shards);

/// What a run's journal says of the run, while nobody runs it.
struct past_run {
  bool completed = false;
  incarnation last_coordinator; ///< highest incarnation issued for the coordinator; 0: it never started
  timeline_id timeline{};       ///< the newest
  store_book::stores stores{};  ///< as the run knew them last
  std::string report{};         ///< of one that is completed; "": it is in the run folder alone
};
/// @returns as common::read_journal(), and storage_damaged. A run without a journal never started.
result<past_run> read_past_run(const common::journal_place& place);

} // namespace dlrun::coordinator
