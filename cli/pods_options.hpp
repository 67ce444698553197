/// What `dlrun manifests` and `dlrun submit` are told of a job on pods.
#pragma once

#include "cli/kubernetes_objects.hpp"
#include "cli/pods_gpus.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::cli {

/// As they are given, and with `pods` as they are meant once settle() was called.
struct pods_options {
  std::string file; ///< of the job
  pods_wish pods{.name = {}, .name_space = {}, .image = {}, .job_file = {}};
  std::uint32_t hosts_min = 0; ///< 0: all
  std::uint32_t hosts_max = 0; ///< 0: no more than pods.hosts
  std::uint32_t ps_cpus = 0;   ///< 0: 1
  gpu_options gpus{};
  node_options nodes{};
};

/// With how many the job begins; 0: with all. `hosts_min` outlives the command.
CLI::Option* add_hosts_min(CLI::App& command, std::uint32_t& hosts_min);
/// Sets `pods.hosts_min`, when the other numbers of pods and GPUs are settled. @returns bad_usage
result<void> settle_hosts_min(std::uint32_t given, pods_wish& pods);

/// Pods for PS shards. `hosts` outlives the command.
CLI::Option* add_ps_hosts(CLI::App& command, std::uint32_t& hosts);
/// Where there are some the control pod is for no role. @returns bad_usage
result<void> spare_control(pods_wish& pods);

/// For archives of the run. `claim` outlives the command.
CLI::Option* add_archive_claim(CLI::App& command, std::string& claim);

/// Of the control pod alone. `cpus` outlives the command.
CLI::Option* add_control_cpus(CLI::App& command, std::optional<std::uint32_t>& cpus);

/// Of each pod, and of the control pod. Both outlive the command.
std::array<CLI::Option*, 2> add_gpus_of_pods(CLI::App& command, std::uint32_t& gpus,
                                             std::optional<std::uint32_t>& control);

/// FILE and all options. `options` outlives the command.
void add_pods_options(CLI::App& command, pods_options& options);

/// Looks at all of it and at the job, fills in what was not given, says on stderr what of that
/// matters, and makes a key where one is needed. @returns bad_usage or bad_spec, naming option or
/// key, value and way out.
result<void> settle(pods_options& options);

/// The objects as YAML, which are a secret unless `pods.secret` is named. Settled.
std::string manifests_of(const pods_wish& pods);

} // namespace dlrun::cli
