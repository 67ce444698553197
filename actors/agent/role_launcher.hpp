/// How an agent starts and stops roles: as processes of this host, or as actors of this process.
#pragma once

#include "actors/agent/copy_board.hpp"
#include "actors/agent/role_end.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/roles.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::agent {

/// What a launcher tells its agent; called on any thread.
struct launch_events {
  std::function<void(const protocol::role_name&, const protocol::fence&, std::int32_t pid)> started;
  /// `why` is bad_usage when another try would fail in the same way.
  std::function<void(const protocol::role_name&, const protocol::fence&, const error& why)> start_failed;
  std::function<void(const protocol::role_name&, const protocol::fence&, const role_end&)> exited;
};

/// One start of a role to be made.
struct launch_order {
  protocol::role_name role;
  protocol::fence self;
  /// Control address of the coordinator; unset when the role is the coordinator.
  std::optional<protocol::join> coordinator{};
  /// What its process shows to those of other hosts; unset in a job of one host.
  std::optional<protocol::role_credentials> credentials{};
  /// Random number of the process of the job's agent; 0: this host's, or the one that began it.
  std::uint64_t agent = 0;
  copy_facts copies{};
};

class role_launcher {
public:
  virtual ~role_launcher() = default;
  /// Never blocks. Answered by `started` or `start_failed`, and `exited` when a started one is
  /// over.
  virtual void start(const launch_order& order, const launch_events& events) = 0;
  /// What the workers that run compute now, as far as that can be seen.
  virtual std::vector<seen_work> look() = 0;
  /// Asks that start to leave or to end, or kills it. Unknown starts are ignored.
  virtual void stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how) = 0;
};

} // namespace dlrun::agent
