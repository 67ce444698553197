#include "actors/common/actor_config.hpp"

namespace dlrun::common {

actor_config::actor_config(std::size_t threads) {
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", threads);
  set("middleman.workers", std::size_t{0});
  set("middleman.attach-utility-actors", false);
  load<caf::io::middleman>();
  add_message_types<caf::id_block::dlrun>();
}

} // namespace dlrun::common
