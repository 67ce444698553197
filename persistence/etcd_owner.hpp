/// etcd_owner: who has a journal in etcd, and what it wrote last.
#pragma once

#include <dlrun/ids.hpp>
#include <optional>
#include <string>

namespace dlrun::persistence {

/// No two are equal: of each taker, its writes are numbered; of two takers of one term, which
/// agents that do not hear each other may start, the random numbers differ.
struct etcd_owner {
  incarnation term;
  std::uint64_t taker = 0; ///< random
  std::uint64_t write = 0; ///< 0: it has taken the term and written nothing yet
  unsigned format = 2;     ///< of the journal, as of one in a folder; 1 is read too

  bool operator==(const etcd_owner&) const = default;
};

/// R41: whether `found` is from before what `self` has written. Whoever follows has a higher term,
/// and nobody else writes under its own.
bool is_older(const etcd_owner& found, const etcd_owner& self);

/// Of a map below `prefix` that has an owner: where that is, and its entry `key`.
std::string key_of_owner(const std::string& prefix);
std::string key_of_entry(const std::string& prefix, const std::string& key);

/// "dlrun-journal 2 term 7 taker 9f3c0a12b4d5e6f7 write 12".
std::string to_text(const etcd_owner& owner);
/// @returns nothing for any other text.
std::optional<etcd_owner> etcd_owner_from(const std::string& text);

} // namespace dlrun::persistence
