/// Starts roles as actors of this process (cluster.placement: threads).
#pragma once

#include "actors/agent/role_launcher.hpp"
#include "actors/common/job_context.hpp"

#include <map>
#include <mutex>

namespace dlrun::runtime {

/// Starts roles as actors of this process. Thread-safe. The agent's handle must be set before the
/// first start().
class thread_launcher : public agent::role_launcher {
public:
  thread_launcher(caf::actor_system& system, std::shared_ptr<const common::job_context> job)
      : system_{system}
      , job_{std::move(job)} {}

  void agent_is(protocol::agent_actor agent) { agent_ = std::move(agent); }

  void start(const agent::launch_order& order, const agent::launch_events& events) override;
  std::vector<agent::seen_work> look() override { return {}; }
  void stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how) override;

private:
  using start_key = std::pair<protocol::role_name, dlrun::incarnation>;

  caf::actor_system& system_;
  std::shared_ptr<const common::job_context> job_;
  std::shared_ptr<common::local_roles> local_ = std::make_shared<common::local_roles>();
  protocol::agent_actor agent_;
  /// Shared with the actors' exit hooks, which may outlive the launcher.
  struct running_roles {
    std::mutex mutex;
    std::map<start_key, caf::actor> actors;
  };
  std::shared_ptr<running_roles> running_ = std::make_shared<running_roles>();
};

} // namespace dlrun::runtime
