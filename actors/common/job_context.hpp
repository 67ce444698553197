/// What every role of a process knows of its job, and what one start of a role is given.
#pragma once

#include "actors/common/local_roles.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/time.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "engine/model.hpp"
#include "engine/optimizer.hpp"
#include "proto/job_spec.pb.h"
#include "transport/run_token.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <spdlog/logger.h>
#include <string>

namespace dlrun::common {

/// Contents of data files that the host agent decoded once: path -> descriptor, owned by whoever made the
/// map.
using data_files = std::map<std::string, int>;

/// Facts of the job, the same in every process; immutable after make_job_context().
struct job_context {
  spec::JobSpec spec; ///< as used: defaults filled in
  std::shared_ptr<const engine::model> model;
  data::sampler sampler;
  std::vector<engine::shard_range> shards{}; ///< what each PS shard owns
  std::uint64_t validation_records = 0;
  std::filesystem::path run_dir{};
  transport::run_token run_token{};
  std::uint64_t process = 0; ///< random number of this process (endpoint::process)
  protocol::time_point started{};
  std::string fingerprint{};
  data_files files{};
  std::shared_ptr<local_roles> local = std::make_shared<local_roles>();

  std::uint64_t steps() const { return sampler.total_steps(); }
  std::uint32_t microbatches_per_step() const {
    return static_cast<std::uint32_t>(spec.train().microbatches_per_step());
  }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(spec.cluster().workers()); }
  std::uint32_t ps_shards() const { return static_cast<std::uint32_t>(spec.cluster().ps_shards()); }
};

struct job_context_arguments {
  spec::JobSpec spec;
  std::uint64_t train_records = 0;
  std::uint64_t validation_records = 0;
  std::filesystem::path run_dir{};
  transport::run_token run_token{};
  protocol::time_point started{};
  data_files files{};
};

/// Builds the model and the sampler. @returns bad_spec as engine::model::build() does.
result<std::shared_ptr<const job_context>> make_job_context(job_context_arguments arguments);

/// Opens a data set, from the inherited descriptors where there are some, else from its files.
result<std::shared_ptr<const data::dataset>> open_dataset(const job_context& job,
                                                          const spec::DatasetSpec& spec);

/// One start of a role.
struct role_context {
  protocol::role_name role;
  protocol::fence self;
  std::shared_ptr<const job_context> job;
  protocol::agent_actor agent{};
  /// Where the coordinator is; unset for the coordinator itself.
  std::optional<protocol::endpoint> coordinator{};
  dlrun::incarnation coordinator_incarnation{};
  std::shared_ptr<spdlog::logger> log{};
};

} // namespace dlrun::common
