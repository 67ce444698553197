/// The folder of a run that is about to begin.
#pragma once

#include "runtime/device_choice.hpp"
#include "runtime/durability_choice.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/replicas_choice.hpp"
#include "runtime/root_home.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::runtime {

struct new_run {
  run_folder folder;
  std::optional<device_choice> device;         ///< of `cluster.device: auto`: what it became
  std::optional<durability_choice> durability; ///< of `durability.log: auto`: what it became
  std::optional<replicas_choice> replicas;     ///< of a job of several hosts
  std::shared_ptr<root_home> home{};           ///< of one whose journal is in an etcd; for local_run_options
};

/// How a run is begun.
struct beginning {
  torn_beginning torn = torn_beginning::refused;
  std::optional<hosts_plan> hosts{}; ///< as of check_for_hosts(), which comes first
  std::string role_program{};        ///< as of local_run_options
  /// Nobody is to wait for what is measured.
  std::function<bool()> is_interrupted = [] { return false; };
};

/// Opens observability.prometheus_port, finds out what cluster.journal needs, settles
/// cluster.device, makes the folder (default: runs/<name of the job>), settles durability.log, and
/// writes down what the run is trained with: spec.yaml for people, run.record for `dlrun resume`.
/// In both durability.replicas is as it was written, in `job` it is settled for these hosts.
/// @returns as open_metrics_port(), settle_journal(), settle_device() and run_folder::create().
result<new_run> begin_run(prepared_job& job, const std::string& wanted_folder, const beginning& how = {});

} // namespace dlrun::runtime
