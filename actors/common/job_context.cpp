#include "actors/common/job_context.hpp"

#include "actors/common/fingerprint.hpp"
#include "base/own_machine.hpp"
#include "base/random.hpp"
#include "engine/cpu_level.hpp"

#include <algorithm>

namespace dlrun::common {
namespace {

job_facts make_facts(job_context_arguments& arguments, const std::shared_ptr<const engine::model>& model) {
  const auto process = base::random_number();
  const auto& cluster = arguments.spec.cluster();
  auto sampler = data::sampler{data::sampler_options_from(arguments.spec.train(), arguments.train_records)};
  auto shards = engine::place_blocks(model->layout(), static_cast<std::uint32_t>(cluster.ps_shards()));
  const auto threads = static_cast<int>(cluster.threads_per_worker());
  return {.spec = std::move(arguments.spec),
          .sampler = std::move(sampler),
          .shards = std::move(shards),
          .metric_names = model->metrics().names(),
          .metric_values = [model](std::span<const double> sums) { return model->metrics().values(sums); },
          .run = arguments.run,
          .run_dir = arguments.run_dir,
          .root_dir = arguments.root_dir.empty() ? arguments.run_dir : std::move(arguments.root_dir),
          .has_hosts = arguments.has_hosts,
          .host = arguments.host.empty() ? base::host_name() : std::move(arguments.host),
          .process = process,
          .agent_process = arguments.agent_process != 0 ? arguments.agent_process : process,
          .started = arguments.started,
          .build = build_here(threads),
          .data = std::move(arguments.data)};
}

} // namespace

result<std::shared_ptr<const job_context>> make_job_context(job_context_arguments arguments) {
  if (auto held = engine::hold_to_cpu_level(arguments.spec.cluster().cpu_level()); !held)
    return tl::unexpected(held.error());
  auto model = engine::model::build(arguments.spec.model());
  if (!model) return tl::unexpected(model.error());
  if (arguments.revisions.empty()) arguments.revisions.push_back(arguments.spec.train());
  auto made = std::make_shared<job_context>(job_context{make_facts(arguments, *model)});
  made->revisions = std::move(arguments.revisions);
  made->model = std::move(*model);
  made->validation_records = arguments.validation_records;
  made->run_token = arguments.run_token;
  made->other_hosts = std::move(arguments.other_hosts);
  made->initial_weights = std::move(arguments.initial_weights);
  made->gpus = std::move(arguments.gpus);
  return made;
}

result<engine::update_rule> job_context::make_update_rule(std::uint64_t revision) const {
  return engine::update_rule::build(revisions.at(revision),
                                    {sampler.steps_per_epoch(), sampler.options().epochs});
}

bool job_context::couples() const {
  return std::ranges::any_of(revisions, [](const auto& one) { return one.has_clip_norm(); });
}

} // namespace dlrun::common
