/// What the dispatcher's core and its parts have decided, by kind.
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "tests/actors/only.hpp"

#include <vector>

namespace dlrun::data_dispatcher {

using test::only;

template <class Message>
struct addressed {
  protocol::role_name to;
  Message message;
};

/// The messages of one kind to workers and PS shards.
template <class Message>
std::vector<addressed<Message>> sent(const data_dispatcher_actions& actions) {
  std::vector<addressed<Message>> some;
  const auto add = [&](protocol::role_name to, const auto& message) {
    std::visit(
        [&]<class Other>(const Other& what) {
          if constexpr (std::is_same_v<Other, Message>) some.push_back({to, what});
        },
        message);
  };
  for (const auto& action : actions) {
    if (const auto* one = std::get_if<to_worker>(&action)) add(protocol::worker_role(one->to), one->message);
    if (const auto* one = std::get_if<to_ps_shard>(&action))
      add(protocol::ps_shard_role(one->to), one->message);
  }
  return some;
}

/// The messages of one kind to the coordinator.
template <class Message>
std::vector<Message> told(const data_dispatcher_actions& actions) {
  std::vector<Message> some;
  for (const auto& what : only<to_coordinator>(actions))
    if (const auto* one = std::get_if<Message>(&what)) some.push_back(*one);
  return some;
}

} // namespace dlrun::data_dispatcher
