/// What the root of a run of several hosts answers to `dlrun logs`.
#pragma once

#include "actors/agent/control_socket.hpp"
#include "actors/agent/routed_launcher.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::runtime {

/// First byte of an answer: behind it stand a listing or bytes of a log, or a reason; nothing when
/// the copies in the run folder are what there is, since the job is over or without that host.
inline constexpr char log_sign_answer = '+', log_sign_refusal = '-', log_sign_over = '.';

/// Answers requests for logs of roles on other hosts, by asking the agent of the host. It does not
/// wait, so a host that does not answer holds up no other request. The answer to `logs HOST` is
/// {"logs":[[role,index,bytes],...]}, that to `log HOST ROLE INDEX OFFSET` the next bytes of that
/// log, none at its end. Any thread may call it.
class host_logs {
public:
  /// @param hosts null in a run on one host. `system` outlives this and all that is asked.
  host_logs(caf::actor_system& system, protocol::agent_actor agent,
            std::shared_ptr<agent::routed_launcher> hosts)
      : system_{system}
      , agent_{std::move(agent)}
      , hosts_{std::move(hosts)} {}

  /// Is it one of these requests?
  static bool takes(std::string_view request);
  void answer(const std::string& request, const agent::control_reply& reply) const;

private:
  template <class Answer, class Wanted>
  void ask(const std::string& host, const Wanted& wanted, const agent::control_reply& reply,
           std::string (*tell)(const Answer&)) const;

  caf::actor_system& system_;
  protocol::agent_actor agent_;
  std::shared_ptr<agent::routed_launcher> hosts_;
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0); ///< not answered yet
};

} // namespace dlrun::runtime
