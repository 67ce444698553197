/// What the run folder lacks of a model whose PS shards ran on other hosts.
#pragma once

#include "actors/agent/hosted_roles.hpp"
#include "actors/coordinator/store_book.hpp"
#include "proto/run_record.pb.h"

#include <dlrun/report.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// What the stores of the run have to hold: of one that is complete the last version, as its report
/// and the stores that its journal knew tell; of another one anything. There are none where
/// the run kept nothing on disk.
agent::last_stores last_stores_of(const std::filesystem::path& run_dir, const records::RunRecord& record,
                                  const coordinator::store_book::stores& known = {});

/// PS shards whose store in the folder is not there, or holds less than `last`. Of one that cannot
/// be read whoever opens it says what is wrong. Nothing for a run that was always on one host.
std::vector<ps_shard_id> missing_stores(const std::filesystem::path& run_dir,
                                        const records::RunRecord& record, agent::last_stores last);

/// For people: how their folders are called, in the run folder and in those of hosts.
std::string folders_of_stores(const std::vector<ps_shard_id>& shards);
/// For people: which they are, and on which host each was last, as far as that is known.
std::string tell_stores(const std::vector<ps_shard_id>& shards, const coordinator::store_book::stores& known);

/// Of a run that is complete: the same, with the hosts that it had, and the way out.
std::string tell_not_whole(const std::filesystem::path& run_dir, const records::RunRecord& record,
                           const std::vector<ps_shard_id>& missing,
                           const coordinator::store_book::stores& known);

/// The same of a run that has ended with this report; "" where it is not complete, or nothing is
/// missing.
std::string why_not_whole(const std::filesystem::path& run_dir, const dlrun::report& ended);

} // namespace dlrun::runtime
