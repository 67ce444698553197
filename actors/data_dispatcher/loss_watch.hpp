/// Looks for lost gradients as long as a PS shard is stuck (rule R14).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/lost_gradients.hpp"
#include "actors/data_dispatcher/repeats.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

struct loss_watch_config {
  dlrun::incarnation self;
  std::uint32_t ps_shards = 1;
  bool couples = false; ///< shards exchange norms (R12)
  std::function<std::uint32_t(step_id)> slots_of;
  protocol::duration repeat_after = std::chrono::milliseconds(200);
};

/// Pure: begins one gradient_search after the other, and asks whom it waits for.
class loss_watch {
public:
  explicit loss_watch(loss_watch_config config);

  /// `heard`: the workers that a search waits for. `all_known` false: others may be there that have
  /// not joined yet (this dispatcher was just started), and no search begins.
  void set_workers(std::map<worker_id, dlrun::incarnation> heard, bool all_known);
  void on_shard(const protocol::shard_status& status);
  /// False when nobody is searching.
  bool on_kept(const protocol::kept& answer, timeline_id timeline);
  /// A new timeline: what was lacking is void.
  void restart() { search_.reset(); }

  /// All statuses are of one timeline. The only way out for a shard that is stuck, so it is
  /// repeated as long as one is. @returns what is lost, for people; nothing while that is not
  /// certain.
  std::optional<std::string> look(const shard_statuses& shards,
                                  const std::vector<protocol::parked_slot>& parked, protocol::time_point now,
                                  data_dispatcher_actions& out);

private:
  void ask(protocol::role_name whom, protocol::time_point now, data_dispatcher_actions& out);

  loss_watch_config config_;
  std::map<worker_id, dlrun::incarnation> workers_;
  bool workers_are_known_ = false;
  std::optional<gradient_search> search_;
  std::uint64_t next_search_ = 1;
  repeats repeats_;
};

} // namespace dlrun::data_dispatcher
