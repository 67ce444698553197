#include "runtime/changed_spec.hpp"

#include "engine/optimizer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t told_changes_max = 8;
constexpr auto optimizer_key = "train.optimizer";

/// The numbers may change, not the kind: what is on disk holds the state of this one. Nor may
/// anything come or go that is state, as momentum.
bool same_state(const spec::OptimizerSpec& before, const spec::OptimizerSpec& after) {
  if (before.kind_case() != after.kind_case()) return false;
  const auto old = engine::optimizer::build(before);
  const auto changed = engine::optimizer::build(after);
  return old && changed && old->state_planes() == changed->state_planes();
}

/// A slot that is left out once stays out: the run is on a timeline without it.
bool keeps_skipped(const spec::TrainSpec& before, const spec::TrainSpec& after) {
  return std::ranges::all_of(before.skip(), [&](const auto& slot) {
    return std::ranges::find(after.skip(), slot) != after.skip().end();
  });
}

bool is_of_optimizer(const job::spec_difference& one) { return one.path.starts_with(optimizer_key); }

} // namespace

std::string tell_changes(const std::vector<job::spec_difference>& changes, std::string_view form) {
  std::vector<std::string> told;
  for (const auto& one : changes)
    if (told.size() < told_changes_max)
      told.push_back(fmt::format(fmt::runtime(form), one.path, one.before, one.after));
  if (changes.size() > told.size()) told.push_back(fmt::format("and {} more", changes.size() - told.size()));
  return fmt::format("{}", fmt::join(told, "; "));
}

std::vector<job::spec_difference> fixed_differences(const spec::JobSpec& before, const spec::JobSpec& after) {
  const bool keeps_state = same_state(before.train().optimizer(), after.train().optimizer());
  const bool keeps_slots = keeps_skipped(before.train(), after.train());
  auto all = job::differences(before, after);
  std::erase_if(all, [&](const auto& one) {
    const bool refused =
        (!keeps_state && is_of_optimizer(one)) || (!keeps_slots && one.path.starts_with("train.skip"));
    return one.rule != spec::FieldRule::FIXED && !refused;
  });
  return all;
}

result<spec_change> compare_specs(const spec::JobSpec& before, const spec::JobSpec& after) {
  const auto fixed = fixed_differences(before, after);
  if (fixed.empty()) {
    const auto all = job::differences(before, after);
    if (all.empty()) return spec_change::none;
    return std::ranges::all_of(all, [](const auto& one) { return one.rule == spec::FieldRule::FREE; })
               ? spec_change::free
               : spec_change::revision;
  }
  return fail(
      error_code::bad_usage,
      fmt::format("a run that is resumed keeps what its state on disk belongs to, but: {}; only {} can "
                  "be changed, without an effect on the result, and {}, from where the run goes on{}",
                  tell_changes(fixed), fmt::join(job::keys_with(spec::FieldRule::FREE), ", "),
                  fmt::join(job::keys_with(spec::FieldRule::REVISION), ", "),
                  std::ranges::any_of(fixed, is_of_optimizer)
                      ? " (an optimizer keeps its kind, momentum, amsgrad and centered do not come "
                        "or go, and initial_accumulator_value stays: its state is on disk)"
                      : ""));
}

} // namespace dlrun::runtime
