/// To which start of each PS shard a worker connects, and when it tries again.
#pragma once

#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <vector>

namespace dlrun::worker {

/// Pure: decides to which start of each PS shard to connect. It follows the directory and connects
/// once to the newest start that has joined. It repeats a failed attempt, and renews a lost
/// connection, until the directory names a newer start.
class shard_connections {
public:
  /// It is tried again `retry_after` after an attempt failed, or a connection was lost.
  shard_connections(std::uint32_t ps_shards, protocol::duration retry_after)
      : ps_shards_{ps_shards}
      , retry_after_{retry_after} {}

  /// @returns the starts to connect to now.
  std::vector<protocol::directory_entry> on_directory(const protocol::directory& directory);
  /// @returns the starts to connect to again.
  std::vector<protocol::directory_entry> on_tick(protocol::time_point now);
  // What came of an attempt, or of the connection. @returns false for a start that a newer one has
  // replaced.
  bool on_connected(ps_shard_id shard, incarnation start);
  bool on_unconnected(ps_shard_id shard, incarnation start, protocol::time_point now);

private:
  enum class state : std::uint8_t { connecting, connected, unconnected };
  struct connection {
    protocol::directory_entry wanted;
    state is = state::connecting;
    protocol::time_point since{}; ///< when it was unconnected
  };

  connection* find(ps_shard_id shard, incarnation start);

  std::uint32_t ps_shards_;
  protocol::duration retry_after_;
  std::map<ps_shard_id, connection> all_;
};

} // namespace dlrun::worker
