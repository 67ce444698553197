#include "persistence/journal.hpp"

namespace dlrun::persistence {

void apply(std::span<const journal_write> changes, std::map<std::string, std::string>& entries) {
  for (const auto& change : changes)
    if (change.value)
      entries.insert_or_assign(change.key, *change.value);
    else
      entries.erase(change.key);
}

} // namespace dlrun::persistence
