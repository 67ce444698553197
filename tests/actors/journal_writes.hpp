/// A journal's entries without a journal.
#pragma once

#include "persistence/journal.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::test {

using journal_entries = std::map<std::string, std::string>;

/// What the journal holds after `writes`.
inline journal_entries written(const std::vector<persistence::journal_write>& writes,
                               journal_entries before = {}) {
  for (const auto& [key, value] : writes)
    if (value)
      before.insert_or_assign(key, *value);
    else
      before.erase(key);
  return before;
}

} // namespace dlrun::test
