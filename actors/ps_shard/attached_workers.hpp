/// The workers that a PS shard tells where it stands.
#pragma once

#include "actors/protocol/handles.hpp"
#include "actors/protocol/step_packets.hpp"
#include "transport/doorbell.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// Whom to tell, and how: through a worker's doorbell, or by message where there is none, or it
/// would not say all. Called by its owner only.
class attached_workers {
public:
  using bell = std::shared_ptr<const transport::doorbell>;
  using sender = std::function<void(const protocol::worker_actor&, const protocol::shard_state&)>;

  explicit attached_workers(sender send)
      : send_(std::move(send)) {}

  /// Where the parameters lie, which every message says.
  void serve(protocol::tensor_location parameters) { parameters_ = std::move(parameters); }

  /// A worker asks: it gets a message next, whatever doorbell it has.
  /// @returns unanswerable for a start that is older than one that asked before.
  enum class answer : std::uint8_t { unanswerable, known_start, new_start };
  answer on_pull(worker_id worker, incarnation speaking, const protocol::worker_actor& from);
  /// @returns false for a worker that has not pulled yet, or has been replaced: it has no use for a
  ///   doorbell.
  bool attach(worker_id worker, incarnation speaking, const bell& one);
  void detach(worker_id worker, const bell& one);
  /// A newer start of the worker exists.
  void forget(worker_id worker, incarnation older_than);

  void tell(worker_id worker, const protocol::shard_state& state);
  void tell_all(const protocol::shard_state& state);
  /// Null when it is not attached.
  protocol::worker_actor find(worker_id worker) const;

private:
  struct attached {
    dlrun::incarnation incarnation;
    protocol::worker_actor handle;
    bell doorbell;                   ///< null while there is none
    std::optional<timeline_id> told; ///< by message; of this one the rest may be said through the doorbell
  };
  void tell(attached& worker, const protocol::shard_state& state);

  sender send_;
  protocol::tensor_location parameters_;
  std::map<worker_id, attached> workers_;
};

} // namespace dlrun::ps_shard
