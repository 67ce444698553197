#include "runtime/changed_spec.hpp"

#include "engine/optimizer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

namespace dlrun::runtime {
namespace {

using google::protobuf::util::MessageDifferencer;

/// `into` with what may be changed freely taken from `from`.
void take_free_parts(const spec::JobSpec& from, spec::JobSpec& into) {
  auto& cluster = *into.mutable_cluster();
  cluster.set_workers(from.cluster().workers());
  cluster.set_placement(from.cluster().placement());
  cluster.set_tensor_channel(from.cluster().tensor_channel());
  *cluster.mutable_restart() = from.cluster().restart();
  into.mutable_data()->set_memory_limit(from.data().memory_limit());
  auto& durability = *into.mutable_durability();
  durability.set_sync(from.durability().sync());
  durability.set_max_recovery(from.durability().max_recovery());
  durability.set_disk_quota(from.durability().disk_quota());
  *into.mutable_observability() = from.observability();
  // The same weights may lie elsewhere by now.
  if (from.train().has_init_from() && into.train().has_init_from() &&
      from.train().init_sha256() == into.train().init_sha256())
    into.mutable_train()->set_init_from(from.train().init_from());
}

/// The numbers may change, not the kind: what is on disk holds the state of this one. Nor may anything come
/// or go that is state, as momentum, or change that state began with.
bool same_state(const spec::OptimizerSpec& before, const spec::OptimizerSpec& after) {
  if (before.kind_case() != after.kind_case()) return false;
  const auto old = engine::optimizer::build(before);
  const auto changed = engine::optimizer::build(after);
  return old && changed && old->state_planes() == changed->state_planes() &&
         before.adagrad().initial_accumulator_value() == after.adagrad().initial_accumulator_value();
}

/// What every update is made by, schedule and clipping included.
void take_update_part(const spec::TrainSpec& from, bool with_optimizer, spec::TrainSpec& into) {
  if (with_optimizer) *into.mutable_optimizer() = from.optimizer();
  *into.mutable_lr_schedule() = from.lr_schedule();
  into.clear_clip_value();
  into.clear_clip_norm();
  if (from.has_clip_value()) into.set_clip_value(from.clip_value());
  if (from.has_clip_norm()) into.set_clip_norm(from.clip_norm());
}

/// A slot that is left out once stays out: the run is on a timeline without it.
bool keeps_skipped(const spec::TrainSpec& before, const spec::TrainSpec& after) {
  return std::ranges::all_of(before.skip(), [&](const auto& slot) {
    return std::ranges::find(after.skip(), slot) != after.skip().end();
  });
}

} // namespace

result<spec_change> compare_specs(const spec::JobSpec& before, const spec::JobSpec& after) {
  if (MessageDifferencer::Equals(before, after)) return spec_change::none;
  auto allowed = before;
  take_free_parts(after, allowed);
  if (MessageDifferencer::Equals(allowed, after)) return spec_change::free;
  const bool keeps_state = same_state(before.train().optimizer(), after.train().optimizer());
  take_update_part(after.train(), keeps_state, *allowed.mutable_train());
  if (keeps_skipped(before.train(), after.train()))
    *allowed.mutable_train()->mutable_skip() = after.train().skip();
  if (after.train().has_from())
    allowed.mutable_train()->set_from(after.train().from());
  else
    allowed.mutable_train()->clear_from();
  std::string differences;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(allowed, after)) return spec_change::revision;
  while (differences.ends_with('\n')) differences.pop_back();
  return fail(
      error_code::bad_usage,
      fmt::format("a run that is resumed keeps its model, data, seed, steps and PS shards; only the "
                  "numbers of train.optimizer, train.lr_schedule, .clip_value, .clip_norm, cluster.workers, "
                  ".placement, .tensor_channel, .restart, durability.sync, .max_recovery, .disk_quota and "
                  "observability can be changed, but: {}{}",
                  differences,
                  keeps_state ? ""
                              : " (an optimizer keeps its kind, momentum, amsgrad and centered "
                                "do not come or go, and initial_accumulator_value stays: its "
                                "state is on disk)"));
}

} // namespace dlrun::runtime
