/// The simulated agent of a job on several hosts: the product's agent_core over its hosted_roles.
///
///     agent_core -- start, stop --> hosted_roles -- here --> local_roles
///         ^                              |  ^  `--- orders --> host_process (each other host)
///         `---- runs, ended ---'         `-- joined, reports, what beats tell
#pragma once

#include "actors/agent/agent_core.hpp"
#include "actors/agent/hosted_roles.hpp"
#include "tests/simulation/agent_commands.hpp"
#include "tests/simulation/beat_line.hpp"
#include "tests/simulation/host_checks.hpp"
#include "tests/simulation/job_agent.hpp"
#include "tests/simulation/local_roles.hpp"

#include <map>
#include <optional>
#include <string>

namespace dlrun::simulation {

/// That the beats of the `number`th agent of the job name: R35, one that takes over goes on with
/// those of the first. Hosts have smaller ones.
constexpr std::uint64_t boot_of_root(const hosts_plan& plan, std::uint64_t number) {
  return 1'000'000 + (plan.takes_over ? 1 : number);
}

class root_process : public job_agent {
public:
  /// The `number`th agent of the job.
  root_process(world& where, std::uint64_t number);

  void start() override;
  void receive(const message& what) override;
  void died() override { roles_.kill_all("the agent has ended"); }
  void connection_broken(const process& other) override {
    if (other.self().incarnation == coordinator_) coordinator_ = {};
  }
  bool addresses(const process& receiver) const override;
  void scale(std::uint32_t workers) override;
  /// What it runs itself, and the agents of hosts, notice their own.
  void lost(process&, std::string) override {}
  /// The TCP connection to the agent of that host is gone; packets may pass.
  void lose_link(std::uint32_t host);
  /// No coordinator's connection leads here.
  bool lacks_coordinator() const { return coordinator_ == incarnation{}; }
  /// All hosts have been there, and the job has begun.
  bool has_begun() const { return has_begun_; }
  host_checks& checks() { return checks_; }

private:
  struct host_link {
    std::uint64_t boot = 0;
    bool is_up = false;
    protocol::time_point joined{};                  ///< in the world's time
    protocol::duration lasts{};                     ///< when packets do not pass
    std::optional<protocol::dismissal> dismissal{}; ///< on its way, however often it is lost
  };

  void on_tick();
  void take_over();
  void on_coordinator(const protocol::join& join);
  void on_heartbeat(const protocol::heartbeat& beat);
  void on_hello(const protocol::host_joined& joined);
  void on_host_message(const message& what);
  void on_job_ended(const protocol::job_ended& ended);
  void look_after_links();
  bool is_over(std::uint32_t host, const host_link& link) const;

  void perform(const agent::agent_actions& actions);
  void end(const protocol::job_ended& ended);
  void carry_out(const agent::hosted_actions& actions);
  void carry_out_one(const agent::to_host& action);
  void carry_out_one(const agent::tell_launch& action);
  void carry_out_one(const agent::watch_beats& action);
  void note_end(const protocol::role_name& role, const protocol::fence& self);

  std::uint64_t number_;
  agent::agent_core core_;
  agent::hosted_roles hosts_;
  host_checks checks_;
  beat_line beats_;
  local_roles roles_;
  agent_commands commands_;
  incarnation coordinator_{};                    ///< to whom a connection leads; 0: to none
  protocol::known_coordinator coordinator_at_{}; ///< that joined last
  bool has_begun_ = false;
  std::map<std::uint32_t, host_link> links_;
};

} // namespace dlrun::simulation
