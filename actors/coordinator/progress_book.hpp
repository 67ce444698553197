/// How far the PS shards are, for the report of a run.
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/time.hpp"
#include "persistence/journal.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::coordinator {

/// The newest word of each PS shard. Kept in the journal, lazily, so that a start of the
/// coordinator that ends before it has heard of them all knows what was told to the one before.
class progress_book {
public:
  progress_book() = default;
  /// `entries`: of the journal. What cannot be read is left out: only the report would show it.
  explicit progress_book(const std::map<std::string, std::string>& entries);

  void hear(const protocol::shard_status& status);
  /// Of each PS shard that is known, in their order. What the journal says of one has no more than
  /// the report needs.
  std::vector<protocol::shard_status> all() const;

  /// What is to be written: every second who is further, or, without `now`, at once.
  std::vector<persistence::journal_write> changes(std::optional<protocol::time_point> now);

private:
  std::map<ps_shard_id, protocol::shard_status> newest_;
  std::set<ps_shard_id> unwritten_;
  protocol::time_point written_{};
};

} // namespace dlrun::coordinator
