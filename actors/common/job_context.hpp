/// What every role of a process knows of its job, and what one start of a role is given.
#pragma once

#include "actors/common/local_roles.hpp"
#include "actors/common/progress_word.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/time.hpp"
#include "base/unique_fd.hpp"
#include "data/job_data.hpp"
#include "data/sampler.hpp"
#include "engine/model.hpp"
#include "engine/update_rule.hpp"
#include "proto/job_spec.pb.h"
#include "transport/joined_parameters.hpp"
#include "transport/run_token.hpp"
#include "transport/tensor_channel.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <spdlog/logger.h>
#include <string>

namespace dlrun::common {

/// B of rule R7: steps that a PS shard may publish ahead of its log, and so (B + 2) steps of
/// gradients that a worker may have to keep. Larger: a slow disk is felt later; each costs the
/// memory of a gradient.
inline constexpr std::uint32_t early_publish_bound = 2;

/// Facts of the job, the same in every process; immutable after make_job_context().
struct job_context {
  spec::JobSpec spec; ///< as used: defaults filled in
  /// `train` of each revision of the specification; `spec` is the newest (docs/cli.md, resume
  /// --set).
  std::vector<spec::TrainSpec> revisions{};
  std::shared_ptr<const engine::model> model;
  data::sampler sampler;
  std::vector<engine::shard_range> shards{}; ///< what each PS shard owns
  std::uint64_t validation_records = 0;
  std::filesystem::path run_dir{};
  transport::run_token run_token{};
  std::uint64_t process = 0;       ///< random number of this process (endpoint::process)
  std::uint64_t agent_process = 0; ///< the same of the agent's
  protocol::time_point started{};
  std::string fingerprint{};
  /// The data, decoded once by the host agent; null in what computes nothing.
  std::shared_ptr<const data::job_data> data{};
  /// What train.init_from names, as the host agent opened and checked it; null: to be opened by its
  /// path.
  std::shared_ptr<const base::unique_fd> initial_weights{};

  /// What PS shards keep on disk.
  protocol::durability durability() const;
  /// Slots, and records of slots, that the specification wants left out.
  std::vector<protocol::parked_slot> skipped() const;
  std::uint64_t revision() const { return revisions.size() - 1; }
  /// The update rule of a revision. @returns as engine::update_rule::build() does.
  result<engine::update_rule> make_update_rule(std::uint64_t revision) const;
  /// Whether PS shards exchange norms (R12): if one revision needs them they always do, since
  /// training may go back to its steps.
  bool couples() const;
  /// The version from which on the newest revision holds; the newest that is there when it is
  /// beyond.
  version_id goes_on_from() const { return {spec.train().has_from() ? spec.train().from() : steps()}; }
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
  transport::channel_kind channel() const {
    return spec.cluster().tensor_channel() == "tcp" ? transport::channel_kind::tcp
                                                    : transport::channel_kind::shared_memory;
  }
  /// Whether workers compute from the parameters where their PS shards have them.
  bool reads_in_place() const {
    return channel() == transport::channel_kind::shared_memory &&
           (ps_shards() == 1 || transport::joined_parameters::is_possible());
  }
  std::uint32_t ps_shards() const { return static_cast<std::uint32_t>(spec.cluster().ps_shards()); }
};

/// Evaluations that a job may have: all results are kept to its end, in the journal and in its
/// report.
inline constexpr std::uint64_t evaluations_max = 10'000;
/// Steps from one evaluation to the next; nothing when only the last version is evaluated.
std::optional<std::uint64_t> steps_between_evaluations(const spec::TrainSpec& train,
                                                       const data::sampler& sampler);

/// "STEP:SLOT" or "STEP:SLOT:RECORD", as in train.skip. @returns nothing for any other text.
std::optional<protocol::parked_slot> parse_slot(const std::string& text);

struct job_context_arguments {
  spec::JobSpec spec;
  std::vector<spec::TrainSpec> revisions{}; ///< `train` of each; empty: `spec` is the only one
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  std::filesystem::path run_dir{};
  std::uint64_t agent_process = 0; ///< 0: this process is the agent's
  transport::run_token run_token{};
  protocol::time_point started{};
  std::shared_ptr<const data::job_data> data{};
  std::shared_ptr<const base::unique_fd> initial_weights{};
};

/// Builds the model and the sampler. @returns bad_spec as engine::model::build() does.
result<std::shared_ptr<const job_context>> make_job_context(job_context_arguments arguments);

/// One part of the job's data. The job must have data, and data.validation where that is asked for.
result<std::shared_ptr<const data::dataset>> open_dataset(const job_context& job, data::data_part part);

/// One start of a role.
struct role_context {
  protocol::role_name role;
  protocol::fence self;
  std::shared_ptr<const job_context> job;
  /// The roles of this process.
  std::shared_ptr<local_roles> local = std::make_shared<local_roles>();
  protocol::agent_actor agent{};
  /// Where the coordinator is; unset for the coordinator itself.
  std::optional<protocol::endpoint> coordinator{};
  dlrun::incarnation coordinator_incarnation{};
  std::shared_ptr<progress_word> progress{}; ///< a worker's, in a process of its own; else null
  std::shared_ptr<spdlog::logger> log{};
};

} // namespace dlrun::common
