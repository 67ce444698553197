/// The facts of a job for roles that compute nothing.
#pragma once

#include "actors/common/fingerprint.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/parking.hpp"
#include "actors/protocol/time.hpp"
#include "base/shell_word.hpp"
#include "data/job_data.hpp"
#include "data/sampler.hpp"
#include "engine/parameter_layout.hpp"
#include "job/choices.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/named_values.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace dlrun::common {

/// The facts of a job. The same in every process; immutable. make_job_context() makes them with the
/// model, from which blocks and metrics follow; but nothing here can compute with the model.
struct job_facts {
  spec::JobSpec spec; ///< as used: defaults filled in
  data::sampler sampler;
  std::vector<engine::shard_range> shards{}; ///< what each PS shard owns
  std::vector<std::string> metric_names{};   ///< of the model, in the order of the specification
  /// The finished metrics of sums over records, as engine::metric_set::values().
  std::function<named_values(std::span<const double>)> metric_values{};
  std::uint64_t run = 0; ///< number of the run, the same however often it is resumed; 0: there is none yet
  std::filesystem::path run_dir{};
  std::filesystem::path root_dir{}; ///< the run folder: on another host than the root's not `run_dir`
  bool has_hosts = false;           ///< others than the root's
  std::string host{};               ///< where this process is, as people call it
  std::uint64_t process = 0;        ///< random number of this process (endpoint::process)
  std::uint64_t agent_process = 0;  ///< the same of the agent's
  protocol::time_point started{};
  build_facts build{};
  /// The data, decoded once by the host agent; null in what computes nothing.
  std::shared_ptr<const data::job_data> data{};

  /// Of people, on the root's host.
  std::string resume_command() const {
    return "dlrun resume " + base::shell_word(root_dir.string()) + (has_hosts ? " --hosts FILE" : "");
  }
  /// What PS shards keep on disk.
  protocol::durability durability() const;
  /// Slots, and records of slots, that the specification wants left out.
  std::vector<protocol::parked_slot> skipped() const;
  std::uint64_t steps() const { return sampler.total_steps(); }
  /// How many times each record was trained on at that version.
  double epochs_at(version_id version) const {
    return static_cast<double>(version.value) / static_cast<double>(sampler.steps_per_epoch());
  }
  /// Versions before the last that are to be evaluated.
  std::set<version_id> evaluations() const;
  std::uint32_t microbatches_per_step() const {
    return static_cast<std::uint32_t>(spec.train().microbatches_per_step());
  }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(spec.cluster().workers()); }
  /// How many workers it may be scaled to.
  std::uint32_t workers_max() const { return job::workers_max_of(spec); }
  std::uint32_t ps_shards() const { return static_cast<std::uint32_t>(spec.cluster().ps_shards()); }
  /// Of each PS shard's store, on as many other hosts.
  std::uint32_t copies() const { return job::replicas_of(spec).value_or(1) - 1; }
};

/// Evaluations that a job may have: all results are kept to its end, in the journal and in its
/// report.
inline constexpr std::uint64_t evaluations_max = 10'000;
/// Steps from one evaluation to the next; nothing when only the last version is evaluated.
std::optional<std::uint64_t> steps_between_evaluations(const spec::TrainSpec& train,
                                                       const data::sampler& sampler);

/// "STEP:SLOT" or "STEP:SLOT:RECORD", as in train.skip. @returns nothing for any other text.
std::optional<protocol::parked_slot> parse_slot(const std::string& text);

/// One part of the job's data. The job must have data, and data.validation where that is asked for.
result<std::shared_ptr<const data::dataset>> open_dataset(const job_facts& job, data::data_part part);

} // namespace dlrun::common
