#include "actors/ps_shard/version_maker.hpp"

#include "actors/common/clock.hpp"
#include "actors/ps_shard/block_scratch.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

/// Sums and updates are bound by the memory's bandwidth, which a few cores use up.
constexpr unsigned threads_max = 4;
/// Copies of blocks that may wait for the writer of a snapshot. A block has 64 Ki floats and their
/// optimizer state: with momentum 32 MiB in all.
constexpr std::size_t snapshot_pool_blocks = 64;
/// A shard of so many floats (4 MiB) applies a step in less than a millisecond: to wake a thread
/// for that, and to be woken by it, takes as long on a machine that has no core to spare.
constexpr std::uint64_t applied_here_max = std::uint64_t{1} << 20;

} // namespace

version_maker::version_maker(std::shared_ptr<const common::job_context> job, ps_shard_id shard,
                             common::way_back back, events told)
    : job_{std::move(job)}
    , shard_{shard}
    , range_{job_->shards.at(shard.value)}
    , is_logged_{job_->durability() == protocol::durability::every_step}
    , back_{std::move(back)}
    , told_{std::move(told)}
    , team_{std::make_shared<base::thread_team>(base::fair_threads(job_->ps_shards(), threads_max))}
    , sums_{range_.size}
    , early_{range_.size} {}

result<void> version_maker::acquire(bool is_empty, common::retained_memory memory) {
  auto made = is_empty ? shard_parameters::create_empty(job_, shard_, std::move(memory))
                       : shard_parameters::create(job_, shard_);
  if (!made) return tl::unexpected(made.error());
  parameters_ = std::make_shared<shard_parameters>(std::move(*made));
  parameters_->use(team_);
  return {};
}

// ---- gradients and their sums

void version_maker::hold(value_id id, gradient one) {
  thread_.run_later([this, id, one = std::move(one)] { values_.emplace(id, value{one}); });
}

void version_maker::carry_out(const make_zero& action) {
  thread_.run([this, action] {
    auto zero = std::make_shared<std::vector<float>>(range_.size, 0.0F);
    values_.emplace(action.into, value{{*zero, zero}});
  });
}

void version_maker::carry_out(const release& action) {
  thread_.run_later([this, action] { values_.erase(action.value); });
}

std::span<const float> version_maker::summands::part(std::uint64_t begin, std::uint64_t end) const {
  const auto size = end - begin;
  const auto into = sum.empty() ? block_scratch(0, size) : sum.subspan(begin, size);
  kernels::cpu::add(left.floats.subspan(begin, size), right.floats.subspan(begin, size), into);
  return into;
}

/// Takes two values out of the table and puts their sum in, which is still to be made: into `sum`,
/// or nowhere, where it is not wanted as a whole.
version_maker::summands version_maker::begin_sum(const combine& action,
                                                 const std::shared_ptr<std::vector<float>>& sum) {
  auto left = values_.extract(action.left);
  auto right = values_.extract(action.right);
  DLRUN_CHECK(left && right, "the core combines values that are there");
  values_.emplace(action.into, sum ? value{{*sum, sum}} : value{});
  return {std::move(left.mapped().of), std::move(right.mapped().of),
          sum ? std::span<float>{*sum} : std::span<float>{}};
}

void version_maker::carry_out(const combine& action) {
  thread_.run([this, action] {
    constexpr std::size_t part = engine::parameter_layout::block_size;
    const auto parts = begin_sum(action, sums_.lend());
    const auto size = parts.sum.size();
    team_->for_each((size + part - 1) / part, [&](std::size_t number) {
      parts.part(number * part, std::min((number + 1) * part, size));
    });
    if (!parts.is_intact()) back_.post([this] { told_.overtaken("a gradient changed while it was summed"); });
  });
}

version_maker::value& version_maker::root_of(value_id root) {
  const auto found = values_.find(root);
  DLRUN_CHECK(found != values_.end(), "the core names a root that is there");
  return found->second;
}

// ---- a step

void version_maker::carry_out(const measure& action, const std::vector<protocol::parked_slot>& parked) {
  thread_.run([this, action, shape = shape_of(job_->sampler, action.step, action.revision, parked)] {
    const auto& root = root_of(action.root).of;
    auto partials = std::make_shared<norm_partials>(parameters_->measure(shape, root.floats));
    if (!root.is_intact())
      return back_.post([this] { told_.overtaken("a gradient changed while its norm was taken"); });
    back_.post([this, step = action.step, partials] { told_.measured(step, std::move(*partials)); });
  });
}

bool version_maker::note_early(const protocol::push& push, const gradient& part) {
  early_.add({push.timeline, push.step}, job_->sampler.slots(push.step), push.slots, part);
  return early_.has_more();
}

void version_maker::apply_early(step_id step, std::uint64_t revision, timeline_id timeline,
                                const std::vector<protocol::parked_slot>& parked) {
  const auto work = std::make_shared<const early_gradients::work>(early_.begin(revision));
  const bool is_sum = !work->is_one();
  if (is_sum && !early_sum_ && is_logged_) early_sum_ = sums_.lend(); // the log wants it as a whole
  const auto shape = shape_of(job_->sampler, step, revision, parked);
  thread_.run([this, work, sum = is_sum ? early_sum_ : nullptr, shape, timeline, step] {
    parameters_->apply_early(
        timeline, step, shape, work->from,
        [&](std::uint64_t begin, std::uint64_t end) {
          return work->part(begin, end,
                            sum ? std::span{*sum}.subspan(begin, end - begin) : std::span<float>{});
        },
        [&] { return work->intact(); });
  });
}

void version_maker::carry_out(const retain& action) {
  thread_.run_later([this, action] { parameters_->notes().note(action); });
}

void version_maker::carry_out(const apply& action, timeline_id timeline,
                              const std::vector<protocol::parked_slot>& parked) {
  const auto shape = shape_of(job_->sampler, action.step, action.revision, parked, action.coupled);
  const auto run =
      range_.size <= applied_here_max ? &common::task_thread::run_here : &common::task_thread::run;
  auto early_sum = std::exchange(early_sum_, nullptr);
  early_.clear();
  (thread_.*
   run)([this, action, timeline, shape, early_sum] { apply_now(action, timeline, shape, early_sum); });
}

/// The last sum of a step is made block by block as it is applied. As a whole only the log wants
/// it.
void version_maker::apply_now(const apply& action, timeline_id timeline, const step_shape& shape,
                              const std::shared_ptr<std::vector<float>>& early_sum) {
  const auto began = common::now();
  const auto room = !is_logged_ || !action.sum ? nullptr : early_sum ? early_sum : sums_.lend();
  const auto parts = action.sum ? std::optional(begin_sum(*action.sum, room)) : std::nullopt;
  auto& root = root_of(action.root);
  const auto made = parameters_->apply(
      timeline, action.step, shape,
      [&](std::uint64_t begin, std::uint64_t end) {
        return parts ? parts->part(begin, end) : root.of.floats.subspan(begin, end - begin);
      },
      [&] { return parts ? parts->is_intact() : root.of.is_intact(); });
  root.is_finite = made || made.error().code != error_code::diverged;
  const auto step = action.step;
  if (!made)
    return back_.post([this, step, timeline, why = made.error()] { told_.not_applied(step, timeline, why); });
  const auto took = common::now() - began;
  if (thread_.is_current())
    back_.enter([&] { told_.applied(step, *made, took); });
  else // on a handler's, whose other actions come first
    back_.post([this, step, made, took] { told_.applied(step, *made, took); });
}

// ---- what is kept, and what is told of it

void version_maker::carry_out(const append& action, const std::shared_ptr<threaded_store>& store) {
  thread_.run([this, action, store] {
    const auto& root = root_of(action.root);
    if (!root.is_finite) return; // then it is applied nowhere, not even by a replay
    store->append({action.step, action.timeline,
                   encode(step_extra{action.revision, action.coupled, action.partials, action.ledger}),
                   root.of.floats, root.of.memory, root.of.intact});
  });
}

void version_maker::carry_out(snapshot_order order, bool is_current,
                              const std::shared_ptr<threaded_store>& store) {
  thread_.run([this, order = std::move(order), is_current, store]() mutable {
    if (is_current) order.image = parameters_->begin_image(snapshot_pool_blocks);
    store->take_snapshot(std::move(order));
  });
}

void version_maker::digest(std::uint32_t first_block, std::uint32_t count,
                           std::function<void(const result<std::string>&)> done) {
  thread_.run([this, first_block, count, done = std::move(done)] {
    back_.post([done, made = parameters_->digests(first_block, count)] { done(made); });
  });
}

} // namespace dlrun::ps_shard
