/// Which starts of workers a PS shard believes, and what each gave first (rule R4).
#pragma once

#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/step_messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: the newest incarnation of each worker, from the directory and from what workers say.
class worker_starts {
public:
  void learn(const protocol::directory& directory);
  /// False for who claims the newest start that the directory names, but does not know its token.
  /// Of other starts incarnations tell.
  bool speaks_for_itself(worker_id worker, const protocol::fence& claimed) const;
  bool knows_newer(worker_id worker, incarnation speaking) const;
  /// A worker speaks. It is the newest start now, unless there is a newer one, which is returned.
  std::optional<incarnation> refuse(worker_id worker, incarnation speaking);

  /// A gradient is accepted. @returns whether it is the first of a start that is newer than those
  /// before.
  bool note_contribution(const protocol::push& push);
  /// The first gradient of each worker's newest start that was accepted and not held already, by
  /// worker.
  std::vector<protocol::first_contribution> contributions() const;

private:
  std::map<worker_id, incarnation> newest_;
  std::map<worker_id, protocol::fence> named_; ///< in the newest directory
  std::map<worker_id, protocol::first_contribution> contributions_;
};

} // namespace dlrun::ps_shard
