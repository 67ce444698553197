/// What may come for an actor from another process.
#pragma once

#include "actors/link/frame.hpp"
#include "actors/protocol/senders.hpp"

#include <caf/actor_control_block.hpp>

namespace dlrun::link {

class connection;

/// One message of a handle.
struct message_entry {
  protocol::role_set senders; ///< empty: never from another process
  /// Hands the frame to `to`. @returns protocol when its payload is no such message.
  result<void> (*deliver)(connection& from, const caf::strong_actor_ptr& to, const frame& what);
};

/// All messages of a handle, in its order. There is one object a handle (table_of()), so that its
/// address names the handle.
struct message_table {
  std::span<const message_entry> entries;
};

/// Of one of the handles in actors/protocol/handles.hpp.
template <class Handle>
const message_table& table_of();

} // namespace dlrun::link
