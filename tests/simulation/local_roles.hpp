/// The roles that an agent runs on its own host, of several.
#pragma once

#include "actors/agent/role_end.hpp"
#include "actors/protocol/host_messages.hpp"
#include "tests/simulation/process.hpp"

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace dlrun::simulation {

/// As the product's process_launcher: a start takes time, an end is noticed after a moment, and
/// what runs ends with who started it.
class local_roles {
public:
  struct owner_side {
    std::function<void(const protocol::role_name&, const protocol::fence&)> started;
    std::function<void(const protocol::role_name&, const protocol::fence&, const agent::role_end&)> exited;
  };

  /// @param job_agent number of the agent of the job
  local_roles(world& where, process& owner, std::uint64_t job_agent, owner_side tell);

  void start(const protocol::role_name& role, const protocol::fence& self);
  void stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how);
  void kill_all(const std::string& why);

private:
  using start_key = std::pair<protocol::role_name, incarnation>;
  struct one_start {
    protocol::fence self;
    process* running = nullptr; ///< null while it is being started
    bool is_to_leave = false;
  };

  void launch(const start_key& key);
  process& create(const protocol::role_name& role, const protocol::fence& self);
  void lost(process& which, const std::string& cause);
  void notice(const start_key& key, const agent::role_end& how);

  world& world_;
  process& owner_;
  std::uint64_t job_agent_;
  owner_side tell_;
  std::map<start_key, one_start> starts_;
};

} // namespace dlrun::simulation
