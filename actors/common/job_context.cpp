#include "actors/common/job_context.hpp"

#include "actors/common/fingerprint.hpp"
#include "job/quantity.hpp"

#include <random>

#include <algorithm>
#include <charconv>

namespace dlrun::common {

result<std::shared_ptr<const job_context>> make_job_context(job_context_arguments arguments) {
  auto model = engine::model::build(arguments.spec.model());
  if (!model) return tl::unexpected(model.error());
  auto sampler = data::sampler{data::sampler_options_from(arguments.spec.train(), arguments.train_records)};
  auto shards = engine::place_blocks((*model)->layout(),
                                     static_cast<std::uint32_t>(arguments.spec.cluster().ps_shards()));
  const auto threads = static_cast<int>(arguments.spec.cluster().threads_per_worker());
  if (arguments.revisions.empty()) arguments.revisions.push_back(arguments.spec.train());
  std::random_device random;
  const auto process = (std::uint64_t{random()} << 32) | random();
  return std::make_shared<const job_context>(
      job_context{.spec = std::move(arguments.spec),
                  .revisions = std::move(arguments.revisions),
                  .model = std::move(*model),
                  .sampler = std::move(sampler),
                  .shards = std::move(shards),
                  .validation_records = arguments.validation_records,
                  .run_dir = std::move(arguments.run_dir),
                  .run_token = arguments.run_token,
                  .process = process,
                  .agent_process = arguments.agent_process != 0 ? arguments.agent_process : process,
                  .started = arguments.started,
                  .fingerprint = host_fingerprint(threads),
                  .data = std::move(arguments.data),
                  .initial_weights = std::move(arguments.initial_weights)});
}

result<engine::update_rule> job_context::make_update_rule(std::uint64_t revision) const {
  return engine::update_rule::build(revisions.at(revision),
                                    {sampler.steps_per_epoch(), sampler.options().epochs});
}

bool job_context::couples() const {
  return std::ranges::any_of(revisions, [](const auto& one) { return one.has_clip_norm(); });
}

std::optional<protocol::parked_slot> parse_slot(const std::string& text) {
  protocol::parked_slot slot;
  const auto* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, slot.step.value);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, slot.slot.value);
  if (second.ec != std::errc{}) return std::nullopt;
  if (second.ptr == end) return slot;
  const auto third = std::from_chars(second.ptr + 1, end, slot.record);
  if (*second.ptr != ':' || third.ec != std::errc{} || third.ptr != end || slot.is_whole())
    return std::nullopt;
  return slot;
}

std::optional<std::uint64_t> steps_between_evaluations(const spec::TrainSpec& train,
                                                       const data::sampler& sampler) {
  const auto every = job::parse_interval(train.evaluate_every());
  if (!every || every->count >= (every->epochs ? sampler.options().epochs : sampler.total_steps()))
    return std::nullopt;
  return every->epochs ? every->count * sampler.steps_per_epoch() : every->count;
}

std::set<version_id> job_context::evaluations() const {
  std::set<version_id> all;
  const auto every = steps_between_evaluations(spec.train(), sampler);
  for (auto version = every.value_or(steps()); version < steps(); version += *every) all.insert({version});
  return all;
}

std::vector<protocol::parked_slot> job_context::skipped() const {
  std::vector<protocol::parked_slot> all;
  for (const auto& text : spec.train().skip())
    if (const auto slot = parse_slot(text)) all.push_back(*slot);
  std::ranges::sort(all);
  return all;
}

protocol::durability job_context::durability() const {
  const auto& log = spec.durability().log();
  if (log == "every_step") return protocol::durability::every_step;
  return log == "snapshots" ? protocol::durability::snapshots : protocol::durability::off;
}

result<std::shared_ptr<const data::dataset>> open_dataset(const job_context& job, data::data_part part) {
  if (job.data == nullptr) return fail(error_code::bad_data, "the job was prepared without its data");
  return data::open_part(*job.data, job.spec.data(), job.spec.train().seed(), part);
}

} // namespace dlrun::common
