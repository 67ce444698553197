/// What the data dispatcher keeps in the journal: the course of the training (docs/formats.md).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "persistence/journal.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

/// What a new start begins with; that of a new job when there is nothing. @returns storage_damaged
/// for an entry that cannot be read.
result<journaled_course> read_course(const std::map<std::string, std::string>& entries);

std::vector<persistence::journal_write> to_writes(const journaled_course& course);

} // namespace dlrun::data_dispatcher
