/// Where an archiver has its bytes from.
#pragma once

#include "runtime/archive_content.hpp"

#include <string>
#include <vector>

namespace dlrun::runtime {

/// All calls block, for seconds at most, and are of one thread. Each returns bad_usage, role_lost
/// or system with why it cannot be had now, timed_out where no answer came in time.
class archive_source {
public:
  virtual ~archive_source() = default;
  /// The snapshots of each PS shard.
  virtual result<std::vector<stored_snapshots>> list() = 0;
  /// Keeps exactly these of each PS shard, until the next call.
  virtual result<void> keep(const std::vector<snapshot_name>& names) = 0;
  /// The next bytes of one that is kept; "" at its end.
  virtual result<std::string> read(ps_shard_id shard, const snapshot_name& name, std::uint64_t offset) = 0;
  /// As the coordinator has it now, all of one moment.
  virtual result<journal_entries> journal() = 0;
};

} // namespace dlrun::runtime
