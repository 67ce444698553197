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

std::vector<std::size_t> floats_of(const std::vector<engine::shard_range>& shards) {
  std::vector<std::size_t> floats;
  for (const auto& one : shards) floats.push_back(one.size);
  return floats;
}

const protocol::suspect_slot* suspect_in(const compute_gradient& what, slot_id slot) {
  const auto found = std::ranges::find_if(what.suspects, [&](const auto& one) { return one.slot == slot; });
  return found == what.suspects.end() ? nullptr : &*found;
}

/// What the prefetcher reads is marked as such.
data::prefetcher::reading_listener marker(std::shared_ptr<common::progress_word> progress) {
  if (progress == nullptr) return nullptr;
  return [progress = std::move(progress)](step_id step, slot_id slot, bool begins) {
    common::progress_word::survive_stack_overflow();
    if (begins)
      progress->enter(common::work_lane::reading, {{step, slot}});
    else
      progress->leave(common::work_lane::reading);
  };
}

/// Whether the device that the computer is on, if it is on one, has failed: from then on it does
/// nothing. One that has no memory left has not.
bool is_of_device(const error& why, engine::computer& computer, engine::computer_vector& out) {
  return out.host().empty() && why.code != error_code::limit_exceeded && !computer.copy(out, 0, {});
}

/// Whether the error counts against the slot that was computed into `out` (R18). Not one about the
/// values, which ends the training; nor one of a device that has failed, or has no memory left: it
/// fails at any slot.
bool is_of_slot(const error& why, engine::computer& computer, engine::computer_vector& out) {
  if (why.code == error_code::diverged) return false;
  const bool is_on_device = out.host().empty();
  return !is_on_device || (why.code != error_code::limit_exceeded && !is_of_device(why, computer, out));
}

/// In the message of a divergence.
constexpr std::size_t records_named_max = 64;

} // namespace

result<std::unique_ptr<trainer>> trainer::create(std::shared_ptr<const common::job_context> job,
                                                 worker_id worker, dlrun::incarnation incarnation,
                                                 std::shared_ptr<transport::segment_offers> server,
                                                 std::shared_ptr<common::progress_word> progress) {
  auto training = common::open_dataset(*job, data::data_part::training);
  if (!training) return tl::unexpected(training.error());
  auto change = data::augmentation::build(job->spec.data().train().augment(), **training);
  if (!change) return tl::unexpected(change.error());
  const auto place = job->place_of(worker);
  auto computer = engine::make_computer_at(place, job->model);
  if (!computer) {
    const bool is_gpu = place.cuda != nullptr && computer.error().code != error_code::limit_exceeded;
    if (is_gpu && progress != nullptr) progress->note_gpu_failure();
    return tl::unexpected(computer.error());
  }
  return std::unique_ptr<trainer>(new trainer(std::move(job), worker, incarnation, std::move(*training),
                                              std::move(*change), std::move(*computer), std::move(server),
                                              std::move(progress)));
}

trainer::trainer(std::shared_ptr<const common::job_context> job, worker_id worker,
                 dlrun::incarnation incarnation, std::shared_ptr<const data::dataset> training,
                 std::optional<data::augmentation> change, engine::placed_computer computer,
                 std::shared_ptr<transport::segment_offers> server,
                 std::shared_ptr<common::progress_word> progress)
    : job_{std::move(job)}
    , progress_{std::move(progress)}
    , worker_{worker}
    , incarnation_{incarnation}
    , prefetcher_{std::move(training), job_->sampler, prefetch_depth(*job_), std::move(change),
                  marker(progress_)}
    , computer_{std::move(computer.computer)}
    , device_{std::move(computer.device)}
    , sums_{*computer_, job_->model->layout().flat_size()}
    , gradients_{job_->model->layout().flat_size(), buffers_max(*job_), std::move(server)}
    , joined_{floats_of(job_->shards), [this](std::size_t parity) { announced_.at(parity).take_back(); }} {
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

/// What is needed now, and what is likely to be needed next. What is read in parts is read when it
/// is needed.
/// @returns the records of `what`.
std::uint64_t trainer::request_records(const compute_gradient& what) {
  std::uint64_t records = 0;
  for (auto slot = what.slots.begin; slot < what.slots.end; ++slot.value) {
    const auto all = job_->sampler.records_in_slot(what.step, slot);
    const auto left = protocol::records_left(what.parked, what.step, slot, all);
    records += left;
    if (left == all && suspect_in(what, slot) == nullptr) prefetcher_.request(what.step, slot);
  }
  const step_id next{what.step.value + 1};
  if (next.value < job_->steps())
    for (auto slot = what.slots.begin; slot < what.slots.end && slot.value < job_->sampler.slots(next);
         ++slot.value)
      if (std::ranges::find(what.not_ahead, slot) == what.not_ahead.end()) prefetcher_.request(next, slot);
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
  if (view_) announce(version_before(step));
  return computer_->read(version_before(step),
                         view_ ? view_->values : std::span<const float>(parameters_[step.value % 2]));
}

/// The parameters of one PS shard lie in its segment, which is another one after each start of the
/// shard; those of several where joined_ maps them, and says so before it maps them anew.
void trainer::announce(version_id version) {
  const auto values = view_->values;
  const auto reader = view_->parts.size() == 1 ? view_->parts.front().reader : nullptr;
  auto& known = announced_[version.value % 2];
  if (known.at == values.data() && known.reader == reader) return;
  for (auto& one : announced_)
    if (&one == &known || one.at == values.data()) one.take_back();
  if (auto told = computer_->announce_parameters(values)) known = {reader, values.data(), std::move(told)};
}

result<computed_gradient> trainer::compute(const compute_gradient& what,
                                           const std::vector<parameter_source>& shards,
                                           const part_listener& tell) {
  const auto step = what.step;
  if (progress_ != nullptr) common::progress_word::survive_stack_overflow();
  const auto overwritten = [&] {
    return fail(error_code::role_lost,
                fmt::format("version {} is not served any more", version_before(step)));
  };
  if (auto read = read_version(what.timeline, step, shards); !read) return tl::unexpected(read.error());
  auto buffer = gradients_.acquire();
  if (!buffer) return tl::unexpected(buffer.error());
  const auto records = request_records(what);
  const auto memory = begin_write(*buffer);
  const auto sum = computer_->lend(memory);
  if (!sum) return tl::unexpected(sum.error());
  diverged_slot_.reset();
  const auto flat_size = job_->model->layout().flat_size();
  std::optional<transport::gradient_header> sealed;
  const auto seal = [&] {
    if (!sealed)
      sealed = buffer->buffer().seal_as({.timeline = what.timeline,
                                         .worker = worker_,
                                         .worker_incarnation = incarnation_,
                                         .step = step,
                                         .slots_begin = what.slots.begin,
                                         .slots_end = what.slots.end,
                                         .records = records,
                                         .flat_size = flat_size});
    return *sealed;
  };
  std::uint64_t told = flat_size;
  const auto on_part = [&](std::uint64_t from) {
    if (told - from < flat_size / engine::computer::progress_parts_max || !is_in_place_still()) return;
    if (!computer_->copy(**sum, from, memory.subspan(from, told - from))) return; // the end will fail too
    told = from;
    tell(*buffer, seal(), from);
  };
  auto done = sum_subtree(what, **sum, tell ? on_part : subtree_sum::progress{});
  if (done) done = computer_->copy(**sum, 0, memory.first(told));
  if (!done && progress_ != nullptr && is_of_device(done.error(), *computer_, **sum))
    progress_->note_gpu_failure();
  if (!is_in_place_still()) return overwritten(); // whatever came out
  if (!done) return tl::unexpected(done.error());
  const auto header = seal();
  return computed_gradient{std::move(*buffer), header};
}

std::span<float> trainer::begin_write(transport::pooled_gradient& buffer) {
  const auto memory = buffer.buffer().begin_write();
  if (buffer.attached() == nullptr) buffer.attached() = computer_->announce_gradient(memory);
  return memory;
}

result<void> trainer::sum_subtree(const compute_gradient& what, engine::computer_vector& out,
                                  const subtree_sum::progress& tell) {
  const auto of_slot = [&](slot_id slot, engine::computer_vector& into,
                           const subtree_sum::progress& tell_slot) -> result<void> {
    // Others were faster: what is left of the sum is for nothing.
    if (!is_in_place_still()) return fail(error_code::role_lost, "it is not served any more");
    if (!protocol::is_parked(what.parked, what.step, slot)) return compute_slot(what, slot, into, tell_slot);
    computer_->clear(into, 0, into.size());
    return {};
  };
  return sums_.run(what.slots, of_slot, out, tell);
}

bool trainer::is_in_place_still() const { return !view_ || view_->unchanged(); }

/// The sum of something that is not finite is not finite. Where it came from is looked for only
/// then: the PS shards serve the version that it was made from until the step can be applied, or
/// all go back.
result<void> trainer::check_finite(const compute_gradient& what, std::span<const float> sum) {
  if (kernels::cpu::all_finite(sum)) return {};
  diverged_slot_.reset();
  std::vector<float> alone(sum.size());
  const auto vector = computer_->lend(alone);
  if (!vector) return tl::unexpected(vector.error());
  for (auto slot = what.slots.begin; slot < what.slots.end; ++slot.value) {
    if (protocol::is_parked(what.parked, what.step, slot)) continue;
    if (auto done = compute_slot(what, slot, **vector, nullptr); !done) return done;
    if (auto copied = computer_->copy(**vector, 0, alone); !copied) return copied;
    if (!is_in_place_still()) return {};
    if (!kernels::cpu::all_finite(alone)) return diverged_at(what.step, slot, describe_loss(alone));
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

std::vector<std::uint32_t> trainer::places_in(const compute_gradient& what, slot_id slot) const {
  const auto left_out = protocol::parked_records(what.parked, what.step, slot);
  std::vector<std::uint32_t> places;
  const auto records = static_cast<std::uint32_t>(job_->sampler.records_in_slot(what.step, slot));
  for (std::uint32_t place = 0; place < records; ++place)
    if (!std::ranges::binary_search(left_out, place)) places.push_back(place);
  return places;
}

result<void> trainer::compute_slot(const compute_gradient& what, slot_id slot, engine::computer_vector& out,
                                   const subtree_sum::progress& tell) {
  const auto* suspect = suspect_in(what, slot);
  const protocol::slot_progress all{{what.step, slot}};
  if (suspect == nullptr && protocol::parked_records(what.parked, what.step, slot).empty()) {
    common::work_mark mark(progress_.get(), common::work_lane::computing, all);
    auto done = prefetcher_.take(what.step, slot, microbatch_);
    if (done) done = forward_backward(what.step, slot, out, tell);
    if (!done && is_of_slot(done.error(), *computer_, out)) mark.keep_as_failed();
    return done;
  }
  const auto places = places_in(what, slot);
  if (suspect != nullptr)
    if (auto tried = try_records(*suspect, places); !tried) return tried;
  return compute_some(what.step, slot, places, suspect != nullptr ? progress_after(*suspect, places) : all,
                      out, tell);
}

/// R18. What a trial comes to but the end of this process comes out again when the slot is
/// computed.
result<void> trainer::try_records(const protocol::suspect_slot& suspect,
                                  const std::vector<std::uint32_t>& places) {
  const auto fewest = static_cast<std::size_t>(job_->model->min_batch());
  std::vector<float> memory(job_->model->layout().flat_size());
  const auto tried = computer_->lend(memory); // a gradient that nobody takes
  if (!tried) return tl::unexpected(tried.error());
  for (const auto& trial : trials_of(suspect, places)) {
    auto records = trial.records;
    for (std::size_t i = 0; records.size() < fewest; ++i) records.push_back(records[i]); // again
    const protocol::slot_progress at{{suspect.step, suspect.slot, trial.blamed}, true};
    const auto done = compute_some(suspect.step, suspect.slot, records, at, **tried, nullptr);
    if (!done && done.error().code != error_code::diverged) return done;
  }
  diverged_slot_.reset();
  return {};
}

result<void> trainer::compute_some(step_id step, slot_id slot, const std::vector<std::uint32_t>& places,
                                   const protocol::slot_progress& at, engine::computer_vector& out,
                                   const subtree_sum::progress& tell) {
  common::work_mark mark(progress_.get(), common::work_lane::computing, at);
  auto done = prefetcher_.read_some(step, slot, places, microbatch_);
  if (done) done = forward_backward(step, slot, out, tell);
  if (!done && is_of_slot(done.error(), *computer_, out)) mark.keep_as_failed();
  return done;
}

result<void> trainer::forward_backward(step_id step, slot_id slot, engine::computer_vector& out,
                                       const subtree_sum::progress& tell) {
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
