/// The simulated agent: keeps the roles running by the product's supervisor, with the fences that
/// the coordinator grants.
#pragma once

#include "actors/agent/scale_orders.hpp"
#include "actors/common/supervisor.hpp"
#include "tests/simulation/job_agent.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::simulation {

class agent_process : public job_agent {
public:
  /// The `number`th agent of the job: after a power cut another one takes over, and knows nothing
  /// but what the journal says.
  agent_process(world& where, std::uint64_t number);

  void start() override;
  void receive(const message& what) override;
  void scale(std::uint32_t workers) override { orders_.ask(workers); }
  void lost(process& which, std::string cause) override;

private:
  struct child {
    protocol::role_name role;
    std::vector<protocol::fence> fences; ///< granted and not used, oldest first
    incarnation last_used;
    std::optional<supervision::generation> wanted; ///< a start that waits for a fence
    supervision::generation number = 0;            ///< of the newest start
    process* running = nullptr;
    bool dismissed = false;                    ///< a worker that is not wanted any more
    std::optional<protocol::role_exited> exit; ///< of the last start that ended
  };

  void perform(const supervision::actions& actions);
  void perform_one(const supervision::start_child& order);
  void perform_one(const supervision::stop_child& order);
  template <class Action>
  void perform_one(const Action& action);
  void follow(const protocol::workers_wanted& word);
  void launch(child& which);
  void launched(child& which, supervision::generation number, protocol::fence fence);
  process& create(protocol::role_name role, protocol::fence fence);
  void notice(child& which, process& lost, const std::string& cause);
  void tell_coordinator();
  child& coordinator();
  bool lacks_fences() const;

  std::uint64_t number_;
  std::uint64_t rounds_ = 0;
  std::map<std::string, child> children_;
  agent::scale_orders orders_;
  std::optional<supervision::supervisor> supervisor_;
};

} // namespace dlrun::simulation
