/// Carries out what befalls the hosts of a job.
#pragma once

#include "tests/simulation/hosts_plan.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace dlrun::simulation {

class process;
class root_process;
class world;

class host_fault_injector {
public:
  /// @param root the agent of the job that is up; null: none is  @param resume starts the next one
  host_fault_injector(world& where, std::function<root_process*()> root, std::function<void()> resume)
      : world_(where)
      , root_(std::move(root))
      , resume_(std::move(resume)) {}

  void plan();
  /// Everything on all hosts dies, what is not synced may be lost.
  void cut_power();

private:
  void inject(host_fault kind);
  std::optional<std::uint32_t> some_host();
  void lose(std::uint32_t host, bool with_disk, bool for_ever);
  void end_all_of(std::uint32_t host, const char* why);
  void cut_host(std::uint32_t host);
  void cut_for_a_while(std::vector<std::pair<std::uint32_t, std::uint32_t>> ways);
  void cut_between_hosts();
  void cut_journal();
  void break_connection(std::uint32_t host);
  void stop_for_a_while(std::uint32_t host);
  void kill_root();
  std::vector<process*> all_of(std::uint32_t host) const;

  world& world_;
  std::function<root_process*()> root_;
  std::function<void()> resume_;
};

} // namespace dlrun::simulation
