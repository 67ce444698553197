/// The log of a shard_store: records of steps, small ones in RocksDB, large ones in segments.
#pragma once

#include "persistence/store_codec.hpp"
#include "persistence/store_ground.hpp"

#include <span>
#include <string>
#include <vector>

namespace dlrun::persistence {

/// Appends, syncs and reads the records of steps, for shard_store: each function is that of the
/// store with the same name.
class log_of_record {
public:
  explicit log_of_record(store_ground& on)
      : on_(on) {}

  result<void> append(std::span<const log_record> records);
  result<step_id> sync();
  result<payload_reader> open_payload(step_id step) const;
  result<record_head> read_head(step_id step) const;

private:
  result<logged_record> logged(step_id step) const;
  result<std::vector<std::string>> write_segments(std::span<const log_record> records);
  void check_order(std::span<const log_record> records) const;

  store_ground& on_;
};

} // namespace dlrun::persistence
