/// Where `dlrun drain` is heard and carried out.
#pragma once

#include "actors/agent/host_drains.hpp"
#include "actors/agent/routed_launcher.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::agent {

/// What the agent of the job lends to it.
struct role_manager {
  std::function<std::vector<role_view>()> roles;
  /// Asks the start in hand to end. @returns whether that will
  std::function<bool(const departure&)> vacate;
  /// The PS shard that was asked to leave is not to any more.
  std::function<void(const protocol::role_name&)> stay;
  std::function<void(const protocol::job_event&)> tell;
  std::function<void()> show;      ///< what `dlrun status` says is as it is now
  std::function<bool()> is_ending; ///< the job
};

/// What a root that comes back goes on with.
struct kept_drains {
  std::map<std::string, drain_stage> all{}; ///< as an earlier root left them
  std::function<result<void>(const std::map<std::string, drain_stage>&)> keep{};
};

/// Between the host_drains, which decide, the launcher, which knows the places, and the agent,
/// which manages the roles. All calls are the agent actor's, on its own thread.
class drain_desk {
public:
  drain_desk(std::shared_ptr<routed_launcher> hosts, kept_drains kept)
      : hosts_{std::move(hosts)}
      , kept_{std::move(kept)}
      , drains_{hosts_->roles().root(), kept_.all} {}

  /// Before anything else.
  void agent_is(role_manager agent) { agent_ = std::move(agent); }
  /// The operator wants a host to be emptied. @returns what is told of it, or bad_usage with the
  /// reason, or system where that cannot be kept in the run folder.
  result<std::string> begin(const std::string& host);
  /// Or not any more.
  result<std::string> undo(const std::string& host);
  void tick(protocol::time_point now);
  const std::map<std::string, drain_view>& all() const { return drains_.all(); }

private:
  /// While nothing is under way.
  static constexpr auto look_period = std::chrono::seconds(1);

  /// Of what is there now. @param roles outlive it
  drain_sight look(const std::vector<role_view>& roles) const;
  /// Where it cannot be kept all stays as it was.
  result<std::string> follow(const std::string& host, drain_stage stage, host_drains after,
                             const result<protocol::job_event>& said);

  /// Before anybody is told: else a root that comes back would not know of it.
  result<void> keep(const std::string& host, drain_stage stage);

  std::shared_ptr<routed_launcher> hosts_;
  kept_drains kept_;
  host_drains drains_;
  protocol::time_point next_look_{};
  role_manager agent_;
};

} // namespace dlrun::agent
