/// The results of evaluations as the journal has them (docs/formats.md): the dispatcher writes
/// them, and the coordinator reads them too.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "persistence/journal.hpp"
#include "proto/journal_records.pb.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::common {

/// So many results an entry: few enough that one more of them writes little, and so many that those
/// of ten thousand evaluations, the most that a run may have, are fewer entries than etcd takes in
/// one transaction.
inline constexpr std::size_t evaluations_an_entry = 128;

/// Those that count, ascending by version. @param course what the entry of the course has
/// @returns nothing when an entry is not there, or cannot be read.
std::optional<std::vector<protocol::evaluated>>
read_evaluations(const std::map<std::string, std::string>& entries, const records::JournalCourse& course);

/// The entries that change where `before` is what they have and `now` what they are to have.
std::vector<persistence::journal_write> evaluation_writes(const std::vector<protocol::evaluated>& before,
                                                          const std::vector<protocol::evaluated>& now);

} // namespace dlrun::common
