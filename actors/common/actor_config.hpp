/// Settings of the actor systems of dlrun's processes.
#pragma once

#include "actors/protocol/type_ids.hpp"

#include <caf/io/all.hpp>

namespace dlrun::common {

/// `threads`: scheduler threads; the actors only route, so few are enough. Work sharing has less
/// than half the latency of the default work stealing. CAF's own heartbeats belong to BASP,
/// which is not spoken: our own come from the actor and not from the I/O thread.
class actor_config : public caf::actor_system_config {
public:
  explicit actor_config(std::size_t threads);
};

} // namespace dlrun::common
