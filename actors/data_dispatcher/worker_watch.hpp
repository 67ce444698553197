/// What the workers have said of themselves.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <map>

namespace dlrun::data_dispatcher {

/// Of a status what is asked for later: statuses come by the thousand.
struct heard_worker {
  dlrun::incarnation incarnation{};
  std::uint64_t slots_computed = 0;
  protocol::worker_activity activity{};
  protocol::time_point at{}; ///< when it was heard
};

/// Pure: of each worker, whether it has joined or not, what its newest start has said last.
class worker_watch {
public:
  void on_status(const protocol::worker_status& status, protocol::time_point now) {
    auto& known = workers_[status.worker];
    if (status.self.incarnation >= known.incarnation)
      known = {status.self.incarnation, status.slots_computed, status.activity, now};
  }
  /// Nobody was heard for a reason of our own: silence counts from now.
  void excuse_silence(protocol::time_point now) {
    for (auto& [id, worker] : workers_) worker.at = now;
  }

  const std::map<worker_id, heard_worker>& heard() const { return workers_; }

private:
  std::map<worker_id, heard_worker> workers_;
};

} // namespace dlrun::data_dispatcher
