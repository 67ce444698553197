/// Roles that live in this process, so that they find each other without a socket.
#pragma once

#include "actors/protocol/roles.hpp"

#include <caf/actor_control_block.hpp>
#include <map>
#include <mutex>

namespace dlrun::common {

/// The roles that are actors of this process, by name. Thread-safe. It holds strong handles until a
/// role is forgotten.
class local_roles {
public:
  void remember(const protocol::role_name& role, dlrun::incarnation incarnation,
                caf::strong_actor_ptr handle) {
    const std::scoped_lock lock{mutex_};
    handles_[role] = {incarnation, std::move(handle)};
  }

  void forget(const protocol::role_name& role, dlrun::incarnation incarnation) {
    const std::scoped_lock lock{mutex_};
    if (const auto found = handles_.find(role);
        found != handles_.end() && found->second.incarnation == incarnation)
      handles_.erase(found);
  }

  /// The handle of exactly that start, or null.
  caf::strong_actor_ptr find(const protocol::role_name& role, dlrun::incarnation incarnation) const {
    const std::scoped_lock lock{mutex_};
    const auto found = handles_.find(role);
    return found != handles_.end() && found->second.incarnation == incarnation ? found->second.handle
                                                                               : nullptr;
  }

private:
  struct entry {
    dlrun::incarnation incarnation;
    caf::strong_actor_ptr handle;
  };
  mutable std::mutex mutex_;
  std::map<protocol::role_name, entry> handles_;
};

} // namespace dlrun::common
