/// Keeps the data dispatcher running, which shares the coordinator's process.
#pragma once

#include "actors/common/supervisor.hpp"
#include "actors/protocol/handles.hpp"
#include "proto/job_spec.pb.h"

#include <functional>
#include <string>

namespace dlrun::coordinator {

/// Supervises the one child "data_dispatcher": starts it, and again when it ends, within the
/// restart budget. Called by the actor `self` only, which hands it the ends of whom it monitors.
class dispatcher_keeper {
public:
  using pointer = protocol::coordinator_actor::base*;
  struct events {
    /// Starts one, and tells it what it must know.
    std::function<protocol::local_data_dispatcher_actor(const std::string& why)> start;
    /// It cannot be kept running.
    std::function<void(const std::string& why)> give_up;
  };

  dispatcher_keeper(pointer self, const spec::RestartSpec& budget, events told);

  void start();
  void on_down(const caf::down_msg& down);
  void on_tick();

private:
  void carry_out(const supervision::actions& actions);

  pointer self_;
  events told_;
  supervision::supervisor supervisor_;
  protocol::local_data_dispatcher_actor current_;
  supervision::generation generation_ = 0; ///< of `current_`
};

} // namespace dlrun::coordinator
