/// When a worker says something again to a PS shard (rule R9).
#pragma once

#include "actors/protocol/time.hpp"

#include <dlrun/ids.hpp>
#include <map>
#include <optional>

namespace dlrun::worker {

/// Pure: knows when each PS shard was heard and spoken to, and so what is due. Anything said or
/// answered may have been lost: what brings no answer within `repeat_after` is said again.
class shard_contacts {
public:
  explicit shard_contacts(protocol::duration repeat_after)
      : repeat_after_(repeat_after) {}

  /// @param is_new_start nothing was pushed to that start
  void on_heard(ps_shard_id shard, bool is_new_start, protocol::time_point now) {
    auto& one = all_[shard];
    one.heard = now;
    if (is_new_start) one.pushed = {};
  }
  /// It is asked at once, however long ago one that was not connected was.
  void on_connected(ps_shard_id shard) { all_[shard].pulled.reset(); }
  void on_pushed(ps_shard_id shard, protocol::time_point now) { all_[shard].pushed = now; }

  /// What it lacks is to be pushed again.
  bool is_push_due(ps_shard_id shard, protocol::time_point now) const {
    return now - of(shard).pushed >= repeat_after_;
  }
  /// It was not heard for so long that it is to be asked where it stands.
  bool is_silent(ps_shard_id shard, protocol::time_point now) const {
    return now - of(shard).heard >= repeat_after_;
  }
  /// @returns whether it may be asked now; it counts as asked then.
  bool begin_pull(ps_shard_id shard, protocol::time_point now) {
    auto& pulled = all_[shard].pulled;
    if (pulled && now - *pulled < repeat_after_) return false;
    pulled = now;
    return true;
  }

private:
  struct contact {
    protocol::time_point heard{};
    protocol::time_point pushed{};
    std::optional<protocol::time_point> pulled{};
  };

  contact of(ps_shard_id shard) const {
    const auto found = all_.find(shard);
    return found == all_.end() ? contact{} : found->second;
  }

  protocol::duration repeat_after_;
  std::map<ps_shard_id, contact> all_;
};

} // namespace dlrun::worker
