/// How a worker reaches the PS shards by messages.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <map>

namespace dlrun::worker {

/// A connection to each PS shard; when one is made, and made again, its owner decides. Called by
/// the actor `self` only. What is sent to a shard that is not connected is lost: it is repeated by
/// timer.
class shard_links {
public:
  using pointer = protocol::worker_actor::base*;
  struct events {
    std::function<void(ps_shard_id, incarnation)> connected;
    /// There is no connection: it could not be made, or is lost.
    std::function<void(ps_shard_id, incarnation)> unconnected;
  };

  /// `context` outlives this.
  shard_links(pointer self, const common::role_context& context, events told);

  /// To this start, from now on, instead of any other. One of the events follows, and after
  /// `connected` the other when the connection is lost.
  void connect(const protocol::directory_entry& entry);
  /// An actor that is monitored has ended, or the connection to it.
  void on_down(const caf::actor_addr& gone);

  /// For the actor's handlers, and for its threads inside its entry lock.
  template <class... Messages>
  void send(ps_shard_id to, const Messages&... messages) const {
    if (const auto found = links_.find(to); found != links_.end() && found->second.handle)
      self_->send(found->second.handle, messages...);
  }

private:
  struct link {
    dlrun::incarnation incarnation;  ///< of the start that `handle` belongs to
    protocol::ps_shard_actor handle; ///< null while connecting
    bool is_missed = false;          ///< the log says that there is no connection
  };

  pointer self_;
  const common::role_context& context_;
  events told_;
  std::map<ps_shard_id, link> links_;
};

} // namespace dlrun::worker
