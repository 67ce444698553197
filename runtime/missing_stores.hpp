/// What the run folder lacks of a model whose PS shards ran on other hosts.
#pragma once

#include "actors/agent/last_stores.hpp"
#include "actors/coordinator/store_book.hpp"
#include "proto/run_record.pb.h"

#include <dlrun/report.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// What the stores of the run must hold: the last version if the run is complete (by its report and
/// the stores that its journal knew), anything otherwise. Empty when the run stored nothing on
/// disk. @returns errors of a report that cannot be read: nobody can tell then
result<agent::last_stores> last_stores_of(const std::filesystem::path& run_dir,
                                          const records::RunRecord& record,
                                          const coordinator::store_book::stores& known = {});

/// The same of a run that is not complete.
agent::last_stores any_stores_of(const records::RunRecord& record);

/// The PS shards whose store is not in the run folder, or holds less than `last`. Empty for a run
/// that was always on one host. Waits 5 s for a store that another process looks at. @returns
/// errors of the first store that cannot be read: nobody can tell then.
result<std::vector<ps_shard_id>> missing_stores(const std::filesystem::path& run_dir,
                                                const records::RunRecord& record, agent::last_stores last);

/// For people: names of the folders of these stores, in the run folder and in those of hosts.
std::string folders_of_stores(const std::vector<ps_shard_id>& shards);
/// For people: these stores, and the host on which each was last, as far as that is known, or why
/// it is not.
std::string tell_stores(const std::vector<ps_shard_id>& shards,
                        const result<coordinator::store_book::stores>& known);

/// For people, for a complete run: the missing stores, the hosts that the run had, and the way out.
std::string tell_not_whole(const std::filesystem::path& run_dir, const records::RunRecord& record,
                           const std::vector<ps_shard_id>& missing,
                           const result<coordinator::store_book::stores>& known);

/// Which stores of a run that nobody trains are not in its folder as its journal knew them last:
/// opened by the newest start that joined, with all that it told of, or why nobody can tell. ""
/// when nothing would be lost with other hosts (R42); for people.
std::string why_not_here(const std::filesystem::path& run_dir);

/// As tell_not_whole(), for a run that has ended with this report, or why nobody can tell whether
/// the model is whole; "" when the run is not complete, or nothing is missing.
std::string why_not_whole(const std::filesystem::path& run_dir, const dlrun::report& ended);
/// The same by the report in the folder; nothing where there is none, or it tells of a run that is
/// not complete.
std::optional<std::string> why_not_whole(const std::filesystem::path& run_dir);

} // namespace dlrun::runtime
