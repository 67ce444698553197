/// Which hosts hold which stores of PS shards (rule R30).
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <dlrun/ids.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure: keeps what each host told of, also while it is away, and knows the best store of each PS
/// shard.
class known_stores {
public:
  /// What a host is preferred by to one whose store is as good; nothing: its stores do not count.
  using preference = std::function<std::optional<int>(const std::string& host)>;

  /// All that it holds, in place of what it told of before.
  void set(const std::string& host, const std::vector<protocol::held_store>& stores);
  /// One that it holds now.
  void note(const std::string& host, const protocol::held_store& one) { all_[host][one.shard] = one; }
  /// Null: it holds none of this PS shard.
  const protocol::held_store* find(const std::string& host, ps_shard_id shard) const;
  /// The host with the store of the highest timeline, then with the furthest end, then opened last;
  /// of equals the one that is preferred, then the first by name. Null: there is none.
  const std::string* best(ps_shard_id shard, const preference& preferred) const;

private:
  std::map<std::string, std::map<ps_shard_id, protocol::held_store>> all_;
};

} // namespace dlrun::agent
