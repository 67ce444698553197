/// What a role knows of its job that computes it, or keeps what is computed.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/common/role_context.hpp"
#include "base/unique_fd.hpp"
#include "engine/cuda/compute_place.hpp"
#include "engine/model.hpp"
#include "engine/update_rule.hpp"
#include "job/choices.hpp"
#include "transport/joined_parameters.hpp"
#include "transport/run_token.hpp"
#include "transport/tensor_channel.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlrun::common {

/// B of rule R7: the number of steps that a PS shard may publish ahead of its log. A worker may
/// have to keep the gradients of B + 2 steps. Larger: a slow disk delays training later, but each
/// step costs the memory of a gradient.
inline constexpr std::uint32_t early_publish_bound = 2;

/// The facts of the job and everything made from them: its model, how it is trained, and how
/// tensors travel. The same in every process, except for `other_hosts` and `gpus`. Immutable after
/// make_job_context().
struct job_context : job_facts {
  /// `train` of each revision of the specification; `spec` is the newest (docs/cli.md, resume
  /// --set).
  std::vector<spec::TrainSpec> revisions{};
  std::shared_ptr<const engine::model> model{};
  std::uint64_t validation_records = 0;
  transport::run_token run_token{};
  /// How this process reaches those of other hosts.
  transport::host_access other_hosts{};
  /// What train.init_from names, as the host agent opened and checked it; null: to be opened by its
  /// path.
  std::shared_ptr<const base::unique_fd> initial_weights{};
  engine::gpu_set gpus{}; ///< that the workers of this process use

  /// What that worker computes on.
  engine::compute_place place_of(worker_id worker) const {
    return gpus.place_of(worker, static_cast<int>(spec.cluster().threads_per_worker()));
  }
  std::uint64_t revision() const { return revisions.size() - 1; }
  /// The update rule of a revision. @returns as engine::update_rule::build() does.
  result<engine::update_rule> make_update_rule(std::uint64_t revision) const;
  /// Whether PS shards exchange norms (R12): if one revision needs them they always do, since
  /// training may go back to its steps.
  bool couples() const;
  /// The version from which on the newest revision holds; the newest that is there when it is
  /// beyond.
  version_id goes_on_from() const { return {spec.train().has_from() ? spec.train().from() : steps()}; }
  transport::channel_kind near_channel() const {
    return job::tensor_channel_of(spec) == job::tensor_channel::tcp ? transport::channel_kind::tcp
                                                                    : transport::channel_kind::shared_memory;
  }
  transport::channel_options channel() const { return {near_channel(), run_token, other_hosts}; }
  /// Whether workers compute from the parameters where their PS shards have them: all on one host.
  bool reads_in_place() const {
    return near_channel() == transport::channel_kind::shared_memory && !other_hosts.tls &&
           (ps_shards() == 1 || transport::joined_parameters::is_possible());
  }
};

struct job_context_arguments {
  spec::JobSpec spec;
  std::vector<spec::TrainSpec> revisions{}; ///< `train` of each; empty: `spec` is the only one
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  std::uint64_t run = 0; ///< its number; 0: there is none yet
  std::filesystem::path run_dir{};
  std::filesystem::path root_dir{}; ///< "": this is the root's host
  bool has_hosts = false;           ///< others than the root's
  std::string host{};               ///< as the list of hosts calls it; "": as the kernel does
  std::uint64_t agent_process = 0;  ///< 0: this process is the agent's
  transport::run_token run_token{};
  transport::host_access other_hosts{};
  protocol::time_point started{};
  std::shared_ptr<const data::job_data> data{};
  std::shared_ptr<const base::unique_fd> initial_weights{};
  engine::gpu_set gpus{};
};

/// Builds the model and the sampler. @returns bad_spec as engine::model::build() does.
result<std::shared_ptr<const job_context>> make_job_context(job_context_arguments arguments);

/// What a start of a worker or PS shard is given, and of the data dispatcher.
using role_context = basic_role_context<job_context>;

} // namespace dlrun::common
