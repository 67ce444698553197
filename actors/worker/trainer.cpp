#include "actors/worker/trainer.hpp"

#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

namespace dlrun::worker {
namespace {

/// Steps whose gradients are kept at a time: early publish bound + 2 (R10), of at most K single slots each. A
/// ceiling, not an allocation: buffers are made when they are needed.
std::size_t buffers_max(const common::job_context& job) {
  return std::size_t{common::early_publish_bound + 2} * job.microbatches_per_step() + 1;
}

std::size_t prefetch_depth(const common::job_context& job) {
  return std::size_t{2} * job.microbatches_per_step();
}

/// A gradient is told of in so many parts at most: each costs the PS shard a waking.
constexpr std::uint64_t parts_max = 4;

std::vector<std::size_t> floats_of(const std::vector<engine::shard_range>& shards) {
  std::vector<std::size_t> floats;
  for (const auto& one : shards) floats.push_back(one.size);
  return floats;
}

/// In the message of a divergence.
constexpr std::size_t records_named_max = 64;

} // namespace

result<std::unique_ptr<trainer>> trainer::create(std::shared_ptr<const common::job_context> job,
                                                 worker_id worker, dlrun::incarnation incarnation,
                                                 std::shared_ptr<transport::segment_offers> server) {
  auto training = common::open_dataset(*job, data::data_part::training);
  if (!training) return tl::unexpected(training.error());
  auto change = data::augmentation::build(job->spec.data().train().augment(), **training);
  if (!change) return tl::unexpected(change.error());
  return std::unique_ptr<trainer>(new trainer(std::move(job), worker, incarnation, std::move(*training),
                                              std::move(*change), std::move(server)));
}

trainer::trainer(std::shared_ptr<const common::job_context> job, worker_id worker,
                 dlrun::incarnation incarnation, std::shared_ptr<const data::dataset> training,
                 std::optional<data::augmentation> change, std::shared_ptr<transport::segment_offers> server)
    : job_{std::move(job)}
    , worker_{worker}
    , incarnation_{incarnation}
    , prefetcher_{std::move(training), job_->sampler, prefetch_depth(*job_), std::move(change)}
    , network_{job_->model, static_cast<int>(job_->spec.cluster().threads_per_worker())}
    , gradients_{job_->model->layout().flat_size(), buffers_max(*job_), std::move(server)}
    , joined_{floats_of(job_->shards)} {
  if (job_->reads_in_place()) return;
  for (auto& version : parameters_) version.assign(job_->model->layout().flat_size(), 0.0F);
}

std::span<float> trainer::part_of(version_id version, ps_shard_id shard) {
  const auto& range = job_->shards.at(shard.value);
  return std::span{parameters_[version.value % 2]}.subspan(range.offset, range.size);
}

bool trainer::copy_part(const parameter_source& source, ps_shard_id shard, timeline_id timeline,
                        version_id version) {
  return source->copy(timeline, version, part_of(version, shard));
}

/// What is needed now, and what is likely to be needed next. @returns the records of `slots`.
std::uint64_t trainer::request_records(step_id step, protocol::slot_range slots,
                                       const std::vector<slot_id>& parked) {
  std::uint64_t records = 0;
  for (auto slot = slots.begin; slot < slots.end; ++slot.value) {
    if (std::ranges::find(parked, slot) != parked.end()) continue;
    prefetcher_.request(step, slot);
    records += job_->sampler.records_in_slot(step, slot);
  }
  const step_id next{step.value + 1};
  if (next.value < job_->steps())
    for (auto slot = slots.begin; slot < slots.end && slot.value < job_->sampler.slots(next); ++slot.value)
      prefetcher_.request(next, slot);
  return records;
}

result<computed_gradient> trainer::compute(timeline_id timeline, step_id step, protocol::slot_range slots,
                                           const std::vector<slot_id>& parked,
                                           const std::vector<parameter_source>& shards,
                                           const part_listener& tell) {
  const auto overwritten = [&] {
    return fail(error_code::role_lost,
                fmt::format("version {} is not served any more", version_before(step)));
  };
  view_.reset();
  if (!shards.empty()) {
    auto in_place = joined_.view(timeline, version_before(step), shards);
    if (!in_place) return tl::unexpected(in_place.error());
    view_ = std::move(*in_place);
  }
  computed_from_ = view_ ? view_->values : std::span<const float>(parameters_[step.value % 2]);
  auto buffer = gradients_.acquire();
  if (!buffer) return tl::unexpected(buffer.error());
  const auto records = request_records(step, slots, parked);
  const auto sum = buffer->buffer().begin_write();
  diverged_slot_.reset();
  const auto flat_size = job_->model->layout().flat_size();
  std::optional<transport::gradient_header> sealed;
  const auto seal = [&] {
    if (!sealed)
      sealed = buffer->buffer().seal_as({.timeline = timeline,
                                         .worker = worker_,
                                         .worker_incarnation = incarnation_,
                                         .step = step,
                                         .slots_begin = slots.begin,
                                         .slots_end = slots.end,
                                         .records = records,
                                         .flat_size = flat_size});
    return *sealed;
  };
  std::uint64_t told = flat_size;
  const auto on_part = [&](std::uint64_t from) {
    if (told - from < flat_size / parts_max || !is_in_place_still()) return;
    told = from;
    tell(*buffer, seal(), from);
  };
  auto done = sum_subtree(step, slots, parked, sum, 0, tell ? on_part : engine::network::progress{});
  if (!is_in_place_still()) return overwritten(); // whatever came out
  if (!done) return tl::unexpected(done.error());
  const auto header = seal();
  return computed_gradient{std::move(*buffer), header};
}

result<void> trainer::sum_subtree(step_id step, protocol::slot_range slots,
                                  const std::vector<slot_id>& parked, std::span<float> out, std::size_t depth,
                                  const engine::network::progress& tell) {
  if (slots.size() == 1) {
    if (std::ranges::find(parked, slots.begin) == parked.end())
      return compute_slot(step, slots.begin, out, tell);
    std::ranges::fill(out, 0.0F);
    return {};
  }
  const auto [left, right] = protocol::reduction_tree::children(slots);
  if (auto done = sum_subtree(step, left, parked, out, depth, nullptr); !done) return done;
  auto beside = scratch(depth);
  std::uint64_t end = out.size(); // of what is not added yet
  const auto add_from = [&](std::uint64_t from) {
    const auto part = [&](std::span<float> all) { return all.subspan(from, end - from); };
    kernels::cpu::add(part(out), part(beside), part(out));
    end = from;
  };
  const auto on_part = [&](std::uint64_t from) {
    add_from(from);
    tell(from);
  };
  if (auto done =
          sum_subtree(step, right, parked, beside, depth + 1, tell ? on_part : engine::network::progress{});
      !done)
    return done;
  add_from(0);
  return {};
}

bool trainer::is_in_place_still() const { return !view_ || view_->unchanged(); }

/// The sum of something that is not finite is not finite. Where it came from is looked for only then: the PS
/// shards serve the version that it was made from until the step can be applied, or all go back.
result<void> trainer::check_finite(step_id step, protocol::slot_range slots,
                                   const std::vector<slot_id>& parked, std::span<const float> sum) {
  if (kernels::cpu::all_finite(sum)) return {};
  diverged_slot_.reset();
  for (auto slot = slots.begin; slot < slots.end; ++slot.value) {
    if (std::ranges::find(parked, slot) != parked.end()) continue;
    const auto alone = scratch(0);
    prefetcher_.request(step, slot);
    if (auto done = compute_slot(step, slot, alone, nullptr); !done) return done;
    if (!is_in_place_still()) return {};
    if (!kernels::cpu::all_finite(alone)) return diverged_at(step, slot, describe_loss(alone));
  }
  return fail(error_code::diverged, std::string{protocol::sum_diverged});
}

result<void> trainer::diverged_at(step_id step, slot_id slot, const std::string& what) {
  diverged_slot_ = slot;
  return fail(error_code::diverged, fmt::format("{}; {}", what, name_records(step, slot)));
}

std::string trainer::describe_loss(std::span<const float> gradient) const {
  const auto& metrics = job_->model->layout().tensors().back();
  const auto loss = gradient[metrics.offset + engine::parameter_layout::metric_index::loss_sum];
  return std::isfinite(loss) ? "the loss is finite, but the gradient is not"
                             : fmt::format("the loss is {}", loss);
}

std::string trainer::name_records(step_id step, slot_id slot) const {
  std::vector<std::uint64_t> records;
  job_->sampler.records(step, slot, records);
  for (auto& record : records) record = prefetcher_.data().number_in_files(record);
  const auto named = std::span{records}.first(std::min(records.size(), records_named_max));
  return fmt::format("its {} records are {}{}", records.size(), fmt::join(named, ", "),
                     named.size() < records.size() ? ", ..." : "");
}

std::span<float> trainer::scratch(std::size_t depth) {
  if (scratch_.size() <= depth) scratch_.resize(depth + 1);
  scratch_[depth].resize(job_->model->layout().flat_size());
  return scratch_[depth];
}

result<void> trainer::compute_slot(step_id step, slot_id slot, std::span<float> out,
                                   const engine::network::progress& tell) {
  if (auto taken = prefetcher_.take(step, slot, microbatch_); !taken) return taken;
  const dlrun::batch batch{microbatch_.records, microbatch_.classes, microbatch_.values,
                           static_cast<std::int64_t>(microbatch_.count)};
  const slot_key key{job_->spec.train().seed(), step.value, slot.value};
  auto done = network_.forward_backward(computed_from_, batch, key, out, tell);
  if (done || done.error().code != error_code::bad_data) return done;
  // Whoever computes this slot meets the same records: like a divergence, it is no reason to start anew.
  return diverged_at(step, slot, done.error().message);
}

} // namespace dlrun::worker
