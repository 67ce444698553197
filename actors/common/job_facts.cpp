#include "actors/common/job_facts.hpp"

#include "job/choices.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <charconv>

namespace dlrun::common {

namespace {

/// As it is printed: "01" and "1" would be two names of one slot.
bool has_leading_zero(const std::string& text) {
  for (std::size_t at = 0; at + 1 < text.size(); ++at)
    if (text[at] == '0' && text[at + 1] != ':' && (at == 0 || text[at - 1] == ':')) return true;
  return false;
}

} // namespace

std::optional<protocol::parked_slot> parse_slot(const std::string& text) {
  if (has_leading_zero(text)) return std::nullopt;
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

std::set<version_id> job_facts::evaluations() const {
  std::set<version_id> all;
  const auto every = steps_between_evaluations(spec.train(), sampler);
  for (auto version = every.value_or(steps()); version < steps(); version += *every) all.insert({version});
  return all;
}

std::vector<protocol::parked_slot> job_facts::skipped() const {
  std::vector<protocol::parked_slot> all;
  for (const auto& text : spec.train().skip())
    if (const auto slot = parse_slot(text)) all.push_back(*slot);
  std::ranges::sort(all);
  return all;
}

protocol::durability job_facts::durability() const {
  switch (job::durability_log_of(spec)) {
  case job::durability_log::every_step: return protocol::durability::every_step;
  case job::durability_log::snapshots: return protocol::durability::snapshots;
  case job::durability_log::automatic: // nobody has measured it, so nothing is kept
  case job::durability_log::off: return protocol::durability::off;
  }
  return protocol::durability::off;
}

result<std::shared_ptr<const data::dataset>> open_dataset(const job_facts& job, data::data_part part) {
  if (job.data == nullptr) return fail(error_code::bad_data, "the job was prepared without its data");
  return data::open_part(*job.data, job.spec.data(), job.spec.train().seed(), part);
}

} // namespace dlrun::common
