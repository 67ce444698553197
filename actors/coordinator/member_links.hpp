/// How the coordinator reaches who has joined, and the data dispatcher.
#pragma once

#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <map>
#include <string>
#include <variant>

namespace dlrun::coordinator {

/// Handles of the joined roles, and of the dispatcher that works for them. What is sent to who has
/// not joined is lost: it is repeated by timer. Called by the actor `self` only.
class member_links {
public:
  using pointer = protocol::coordinator_actor::base*;
  using member = std::variant<protocol::worker_actor, protocol::ps_shard_actor>;

  explicit member_links(pointer self)
      : self_(self) {}

  /// `who` speaks for the role from now on.
  void admit(const protocol::role_name& role, member who) { members_.insert_or_assign(role, std::move(who)); }
  /// Who dispatches now.
  void follow(protocol::local_data_dispatcher_actor dispatcher) { dispatcher_ = std::move(dispatcher); }
  /// As others may see it; null before the first.
  protocol::data_dispatcher_actor dispatcher() const {
    return caf::actor_cast<protocol::data_dispatcher_actor>(dispatcher_);
  }

  /// It ends with an error, and is started again as after any other (R41).
  void end_dispatcher() const {
    self_->send_exit(dispatcher_,
                     caf::make_error(caf::sec::runtime_error, "its course is older than the training"));
  }
  /// To all, and who dispatches.
  void send(const protocol::directory& directory) const;
  /// To the dispatcher, with the handle of that role.
  void send(const protocol::worker_available& message) const;
  void send(const protocol::ps_shard_available& message) const;
  template <class Message>
  void tell_dispatcher(const Message& message) const {
    self_->send(dispatcher_, message);
  }
  /// `failed` gets the reason when the shard does not answer. Neither is called of one that has not
  /// joined.
  void ask(const request_digests& order, std::function<void(const protocol::digest_reply&)> answered,
           std::function<void(const std::string&)> failed) const;

private:
  /// Null when that role has not joined.
  template <class Handle>
  const Handle* find(const protocol::role_name& role) const {
    const auto found = members_.find(role);
    return found == members_.end() ? nullptr : std::get_if<Handle>(&found->second);
  }

  pointer self_;
  std::map<protocol::role_name, member> members_;
  protocol::local_data_dispatcher_actor dispatcher_;
};

} // namespace dlrun::coordinator
