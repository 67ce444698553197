#include "actors/worker/trainer.hpp"

#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

namespace dlrun::worker {
namespace {

/// Steps whose gradients are kept at a time: early publish bound + 2 (R10), of at most K single
/// slots each. A ceiling, not an allocation: buffers are made when they are needed.
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
    , computer_{engine::make_computer(job_->model,
                                      static_cast<int>(job_->spec.cluster().threads_per_worker()))}
    , sums_{*computer_, job_->model->layout().flat_size()}
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

/// In place, or of the parts that were copied.
result<void> trainer::read_version(timeline_id timeline, step_id step,
                                   const std::vector<parameter_source>& shards) {
  view_.reset();
  if (!shards.empty()) {
    auto in_place = joined_.view(timeline, version_before(step), shards);
    if (!in_place) return tl::unexpected(in_place.error());
    view_ = std::move(*in_place);
  }
  return computer_->read(version_before(step),
                         view_ ? view_->values : std::span<const float>(parameters_[step.value % 2]));
}

result<computed_gradient> trainer::compute(timeline_id timeline, step_id step, protocol::slot_range slots,
                                           const std::vector<slot_id>& parked,
                                           const std::vector<parameter_source>& shards,
                                           const part_listener& tell) {
  const auto overwritten = [&] {
    return fail(error_code::role_lost,
                fmt::format("version {} is not served any more", version_before(step)));
  };
  if (auto read = read_version(timeline, step, shards); !read) return tl::unexpected(read.error());
  auto buffer = gradients_.acquire();
  if (!buffer) return tl::unexpected(buffer.error());
  const auto records = request_records(step, slots, parked);
  const auto memory = buffer->buffer().begin_write();
  const auto sum = computer_->lend(memory);
  if (!sum) return tl::unexpected(sum.error());
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
    if (!computer_->copy(**sum, from, memory.subspan(from, told - from))) return; // the end will fail too
    told = from;
    tell(*buffer, seal(), from);
  };
  auto done = sum_subtree(step, slots, parked, **sum, tell ? on_part : subtree_sum::progress{});
  if (done) done = computer_->copy(**sum, 0, memory.first(told));
  if (!is_in_place_still()) return overwritten(); // whatever came out
  if (!done) return tl::unexpected(done.error());
  const auto header = seal();
  return computed_gradient{std::move(*buffer), header};
}

result<void> trainer::sum_subtree(step_id step, protocol::slot_range slots,
                                  const std::vector<slot_id>& parked, engine::computer_vector& out,
                                  const subtree_sum::progress& tell) {
  const auto of_slot = [&](slot_id slot, engine::computer_vector& into,
                           const subtree_sum::progress& tell_slot) -> result<void> {
    if (std::ranges::find(parked, slot) == parked.end()) return compute_slot(step, slot, into, tell_slot);
    computer_->clear(into, 0, into.size());
    return {};
  };
  return sums_.run(slots, of_slot, out, tell);
}

bool trainer::is_in_place_still() const { return !view_ || view_->unchanged(); }

/// The sum of something that is not finite is not finite. Where it came from is looked for only
/// then: the PS shards serve the version that it was made from until the step can be applied, or
/// all go back.
result<void> trainer::check_finite(step_id step, protocol::slot_range slots,
                                   const std::vector<slot_id>& parked, std::span<const float> sum) {
  if (kernels::cpu::all_finite(sum)) return {};
  diverged_slot_.reset();
  std::vector<float> alone(sum.size());
  const auto vector = computer_->lend(alone);
  if (!vector) return tl::unexpected(vector.error());
  for (auto slot = slots.begin; slot < slots.end; ++slot.value) {
    if (std::ranges::find(parked, slot) != parked.end()) continue;
    prefetcher_.request(step, slot);
    if (auto done = compute_slot(step, slot, **vector, nullptr); !done) return done;
    if (auto copied = computer_->copy(**vector, 0, alone); !copied) return copied;
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
  const auto metrics = job_->model->layout().metrics().offset;
  const auto loss = gradient[metrics + engine::parameter_layout::metric_index::loss_sum];
  if (!std::isfinite(loss)) return fmt::format("the loss is {}", loss);
  if (!kernels::cpu::all_finite(gradient.first(metrics)))
    return "the loss is finite, but the gradient is not";
  return fmt::format("loss and gradient are finite, but a metric is not ({})",
                     fmt::join(job_->model->metrics().names(), ", "));
}

std::string trainer::name_records(step_id step, slot_id slot) const {
  std::vector<std::uint64_t> records;
  job_->sampler.records(step, slot, records);
  for (auto& record : records) record = prefetcher_.data().number_in_files(record);
  const auto named = std::span{records}.first(std::min(records.size(), records_named_max));
  return fmt::format("its {} records are {}{}", records.size(), fmt::join(named, ", "),
                     named.size() < records.size() ? ", ..." : "");
}

result<void> trainer::compute_slot(step_id step, slot_id slot, engine::computer_vector& out,
                                   const subtree_sum::progress& tell) {
  if (auto taken = prefetcher_.take(step, slot, microbatch_); !taken) return taken;
  const dlrun::batch batch{microbatch_.records, microbatch_.classes, microbatch_.values,
                           static_cast<std::int64_t>(microbatch_.count)};
  const slot_key key{job_->spec.train().seed(), step.value, slot.value};
  auto done = computer_->forward_backward(batch, key, out, tell);
  if (done || done.error().code != error_code::bad_data) return done;
  // Whoever computes this slot meets the same records: like a divergence, it is no reason to start
  // anew.
  return diverged_at(step, slot, done.error().message);
}

} // namespace dlrun::worker
