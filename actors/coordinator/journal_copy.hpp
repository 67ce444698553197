/// The journal as it goes to the root, for an archive (R45).
#pragma once

#include "actors/protocol/archive_messages.hpp"

#include <dlrun/error.hpp>
#include <map>
#include <optional>
#include <string>

namespace dlrun::coordinator {

/// The bytes of records::JournalCopy from `offset` on.
protocol::journal_part part_of_journal(const std::map<std::string, std::string>& entries,
                                       std::uint64_t offset);

/// All of it again. @returns nothing for bytes that are none.
std::optional<std::map<std::string, std::string>> journal_from(const std::string& bytes);

} // namespace dlrun::coordinator
