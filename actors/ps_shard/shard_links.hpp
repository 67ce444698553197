/// How a PS shard reaches the others, with which it exchanges norms (R12).
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <map>
#include <optional>

namespace dlrun::ps_shard {

/// Connections to the other PS shards. Of two the one with the higher index connects, and the other
/// answers whoever speaks: one connection serves both. Called by the actor `self` only. What is
/// sent to a shard that is not connected is lost: it is repeated by timer.
class shard_links {
public:
  using pointer = protocol::ps_shard_actor::base*;
  struct events {
    std::function<protocol::norm_request()> greeting; ///< the first word to a shard that was connected to
    std::function<void()> linked;                     ///< what went to nobody before can be said again
  };

  /// `context` outlives this.
  shard_links(pointer self, const common::role_context& context, events told);

  /// Connects to all whom `directory` names; again and again, until it is replaced.
  void follow(const protocol::directory& directory);
  // A message that is being handled: who speaks can be spoken to. @returns false for one that no
  // correct shard sends.
  bool take_word(const protocol::norm& message);
  bool take_word(const protocol::norm_request& message) { return note_sender(message.from); }
  /// An actor that is monitored has ended, or the connection to it: it is connected to again while
  /// the directory names it.
  void on_down(const caf::actor_addr& gone);

  template <class Message>
  void send(ps_shard_id to, const Message& message) const {
    if (const auto found = links_.find(to); found != links_.end() && found->second.handle)
      self_->send(found->second.handle, message);
  }

private:
  struct link {
    dlrun::incarnation incarnation;  ///< that was connected to; of one that connects to us: 0
    protocol::ps_shard_actor handle; ///< null while there is none
    bool is_connecting = false;
  };

  bool note_sender(ps_shard_id shard);
  void connect_all();
  void connect_soon();
  void connect(const protocol::directory_entry& entry);
  void on_connected(ps_shard_id shard, incarnation start, const protocol::ps_shard_actor& handle);

  pointer self_;
  const common::role_context& context_;
  events told_;
  protocol::directory directory_;
  std::map<ps_shard_id, link> links_;
};

} // namespace dlrun::ps_shard
