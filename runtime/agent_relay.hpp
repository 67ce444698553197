/// The root's agent, as a role of a job of several hosts reaches it.
#pragma once

#include "actors/common/root_place.hpp"
#include "actors/link/process_link.hpp"
#include "actors/protocol/handles.hpp"
#include "security/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <spdlog/logger.h>
#include <string>

namespace dlrun::runtime {

/// Finds the agent. Never blocks; calls its argument once, on any thread.
using agent_dialler = std::function<void(std::function<void(result<protocol::agent_actor>)>)>;

/// Connects to the agent at an address, and is called as an agent_dialler is.
using agent_connector =
    std::function<void(const std::string& address, std::function<void(result<protocol::agent_actor>)>)>;

/// Connects over `link`, which must outlive it; where that is connected to the agent already, no
/// matter where, it finds that connection.
agent_connector connect_over(link::process_link& link);

/// A dialler that connects to the agent at `address`, or where `place` says that it is now. Each
/// tenth time it tries `address` beside: what calls may have been seen through somebody who
/// translates addresses. Nobody waits for that try, since nobody may answer there any more; where
/// it comes about, the next dial finds its connection. @param place null: nobody calls
agent_dialler agent_dial(agent_connector connect, std::string address,
                         std::shared_ptr<const common::root_place> place);

/// Ends the connection to the agent that is there, so that it is found anew.
std::function<void()> agent_leave(link::process_link& link);

struct agent_relay_options {
  protocol::agent_actor first{}; ///< the agent, as it was found; null: it is to be found
  agent_dialler dial;            ///< null: one that is lost is not found again
  /// Where it is dialled; one that has moved is dialled at once. Null: it stays where it is.
  std::shared_ptr<const common::root_place> place{};
  std::function<void()> leave{};                   ///< called when it has moved; null: it is left by itself
  protocol::credentials_wanted self;               ///< who this process is
  std::shared_ptr<security::tls_context> identity; ///< what it shows
  std::chrono::seconds lifetime{};                 ///< of its certificate
  std::shared_ptr<spdlog::logger> log;
};

/// Forwards messages to the agent, through an actor that stands for it. When the connection is lost
/// it connects again; messages sent meanwhile are lost, as messages may be. It renews the
/// certificate of the process after half of its lifetime; open connections keep the old one.
class agent_relay {
public:
  agent_relay(caf::actor_system& system, agent_relay_options options);
  /// Blocks until the actor has ended. The control link must still be there.
  ~agent_relay();
  agent_relay(const agent_relay&) = delete;
  agent_relay& operator=(const agent_relay&) = delete;

  const protocol::agent_actor& agent() const { return relay_; }

private:
  caf::actor_system& system_;
  protocol::agent_actor relay_;
};

} // namespace dlrun::runtime
