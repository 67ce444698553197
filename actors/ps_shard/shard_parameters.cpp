#include "actors/ps_shard/shard_parameters.hpp"

#include "actors/protocol/messages.hpp"
#include "actors/ps_shard/initial_values.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

/// A shard of more floats (a version of 16 MiB, and three to six such vectors are gone through in a step)
/// finds none of them in the caches at the next step, and no worker finds all of a version there.
constexpr std::uint64_t streamed_above = std::uint64_t{4} << 20;

} // namespace

result<shard_parameters> shard_parameters::create(std::shared_ptr<const common::job_context> job,
                                                  ps_shard_id shard) {
  auto made = create_empty(std::move(job), shard);
  if (!made) return made;
  if (auto filled = made->reset(timeline_id{0}); !filled) return tl::unexpected(filled.error());
  return made;
}

result<shard_parameters> shard_parameters::create_empty(std::shared_ptr<const common::job_context> job,
                                                        ps_shard_id shard) {
  std::vector<engine::update_rule> rules;
  for (std::uint64_t revision = 0; revision <= job->revision(); ++revision) {
    auto rule = job->make_update_rule(revision);
    if (!rule) return tl::unexpected(rule.error());
    rules.push_back(std::move(*rule));
    DLRUN_CHECK(rules.back().optimizer().state_planes() == rules.front().optimizer().state_planes(),
                "revision {} of the specification has an optimizer with another state", revision);
  }
  const auto& range = job->shards.at(shard.value);
  auto writer = transport::parameter_writer::create(range.size, range.offset);
  if (!writer) return tl::unexpected(writer.error());
  return shard_parameters{std::move(job), shard, std::move(*writer), std::move(rules)};
}

shard_parameters::shard_parameters(std::shared_ptr<const common::job_context> job, ps_shard_id shard,
                                   transport::parameter_writer writer, std::vector<engine::update_rule> rules)
    : job_{std::move(job)}
    , range_{job_->shards.at(shard.value)}
    , writer_{std::move(writer)}
    , rules_{std::move(rules)} {
  const auto& layout = job_->model->layout();
  std::uint64_t state = 0;
  for (auto index = range_.first_block; index < range_.last_block; ++index) {
    const auto& block = layout.blocks()[index];
    blocks_.push_back({block, block.offset - range_.offset, state, layout.tensors()[block.tensor].momentum});
    if (block.kind == tensor_kind::parameter)
      state += block.size * rules_.front().optimizer().state_floats_per_parameter();
  }
  state_.resize(state);
}

// ---- whole states

result<void> shard_parameters::reset(timeline_id timeline) {
  give_up();
  for (const auto& owned : blocks_) rules_.front().optimizer().start_state(state_of(owned));
  if (auto filled = initial_values(*job_, range_, writer_.begin_write(timeline, version_id{0})); !filled) {
    writer_.withdraw_all();
    return filled;
  }
  writer_.publish();
  return {};
}

void shard_parameters::withdraw() {
  give_up();
  writer_.withdraw_all();
}

result<void> shard_parameters::load(timeline_id timeline, version_id version, const state_source& source) {
  give_up();
  const auto into = writer_.begin_write(timeline, version);
  for (const auto& owned : blocks_) {
    auto read = source(into.subspan(owned.offset, owned.block.size));
    if (read) read = source(state_of(owned));
    if (read) continue;
    writer_.withdraw_all();
    return read;
  }
  writer_.publish();
  return {};
}

result<void> shard_parameters::extract(const state_source& source, std::span<float> out) const {
  DLRUN_CHECK(out.size() == range_.size, "{} floats of room for {} parameters", out.size(), range_.size);
  std::ranges::fill(out, 0.0F); // the padding between tensors
  std::vector<float> state;
  for (const auto& owned : blocks_) {
    state.resize(state_floats(owned));
    if (auto read = source(out.subspan(owned.offset, owned.block.size)); !read) return read;
    if (auto read = source(state); !read) return read;
  }
  return {};
}

std::shared_ptr<state_image> shard_parameters::begin_image(std::size_t pool_blocks) {
  std::vector<block_memory> memory;
  memory.reserve(blocks_.size());
  for (const auto& owned : blocks_)
    memory.push_back({writer_.current().subspan(owned.offset, owned.block.size), state_of(owned)});
  auto image = std::make_shared<state_image>(std::move(memory), pool_blocks);
  images_.push_back(image);
  return image;
}

std::size_t shard_parameters::image_floats() const {
  std::size_t all = state_.size();
  for (const auto& owned : blocks_) all += owned.block.size;
  return all;
}

void shard_parameters::preserve(std::size_t block) {
  for (const auto& one : images_)
    if (const auto image = one.lock()) image->preserve(block);
}

// ---- one step

std::span<float> shard_parameters::state_of(const owned_block& owned) {
  return std::span{state_}.subspan(owned.state_offset, state_floats(owned));
}

std::uint64_t shard_parameters::state_floats(const owned_block& owned) const {
  return owned.block.kind == tensor_kind::parameter
             ? owned.block.size * rules_.front().optimizer().state_floats_per_parameter()
             : 0;
}

void shard_parameters::update(const owned_block& owned, step_id step, const step_shape& shape,
                              std::span<const float> sums, std::span<float> out) {
  const auto part = [&](auto span) { return span.subspan(owned.offset, owned.block.size); };
  if (shape.records == 0) { // all of it was left out: there is no mean, and nothing changes
    std::ranges::copy(part(writer_.current()), part(out).begin());
    return;
  }
  switch (owned.block.kind) {
  case tensor_kind::parameter:
    rules_.at(shape.revision)
        .update({step, shape.records, shape.norm, range_.size > streamed_above}, sums,
                part(writer_.current()), part(out), state_of(owned));
    break;
  case tensor_kind::buffer:
    engine::update_buffer(1.0F / static_cast<float>(shape.slots), owned.momentum, sums,
                          part(writer_.current()), part(out));
    break;
  case tensor_kind::metric: std::ranges::fill(part(out), 0.0F); break;
  }
}

norm_partials shard_parameters::measure(const step_shape& shape, std::span<const float> root) const {
  DLRUN_CHECK(root.size() == range_.size, "a root has {} floats, the shard {}", root.size(), range_.size);
  norm_partials partials;
  for (const auto& owned : blocks_) {
    if (owned.block.kind != tensor_kind::parameter) continue;
    const auto part = root.subspan(owned.offset, owned.block.size);
    const double sum = shape.records == 0 ? 0 : rules_.at(shape.revision).sum_of_squares(shape.records, part);
    partials.push_back(std::bit_cast<std::uint64_t>(sum));
  }
  return partials;
}

step_metrics shard_parameters::metrics_in(std::span<const float> block) const {
  using index = engine::parameter_layout::metric_index;
  const auto sums = block.subspan(index::first_metric, metric_sums());
  return {
      block[index::loss_sum], static_cast<std::uint64_t>(block[index::records]), {sums.begin(), sums.end()}};
}

void shard_parameters::begin(timeline_id timeline, step_id step) {
  if (begun_ && begun_->timeline == timeline && begun_->step == step) return;
  DLRUN_CHECK(!begun_, "step {} is begun before step {} is done", step, begun_->step);
  begun_.emplace(begun_step{.timeline = timeline,
                            .step = step,
                            .out = writer_.begin_write(timeline, version_after(step)),
                            .left = blocks_.size(),
                            .metrics = {}});
  std::erase_if(images_, [](const auto& image) { return image.expired(); });
}

void shard_parameters::give_up() {
  if (begun_) writer_.abandon();
  begun_.reset();
}

/// Padding belongs to the block before it, so that all of a root is asked for.
std::uint64_t shard_parameters::begin_of(std::size_t block) const {
  if (block == 0) return 0;
  return block == blocks_.size() ? range_.size : blocks_[block].offset;
}

/// Blocks [first, begun_->left).
void shard_parameters::apply_blocks(std::size_t first, const step_shape& shape, const root_source& root,
                                    base::thread_team* team) {
  auto& now = *begun_;
  std::atomic<bool> is_finite = true;
  const auto body = [&](std::size_t index) {
    const auto number = first + index;
    const auto& owned = blocks_[number];
    const auto begin = begin_of(number), end = begin_of(number + 1);
    const auto part = root(begin, end);
    DLRUN_CHECK(part.size() == end - begin, "floats [{}, {}) of a root are {}", begin, end, part.size());
    if (!kernels::cpu::all_finite(part)) is_finite = false;
    const auto sums = part.subspan(owned.offset - begin, owned.block.size);
    preserve(number);
    update(owned, now.step, shape, sums, now.out);
    if (owned.block.kind == tensor_kind::metric) now.metrics = metrics_in(sums); // there is one such block
  };
  const auto count = now.left - first;
  if (team)
    team->for_each(count, body);
  else
    for (std::size_t index = 0; index < count; ++index) body(index);
  now.left = first;
  now.is_finite = now.is_finite && is_finite;
}

void shard_parameters::apply_early(timeline_id timeline, step_id step, const step_shape& shape,
                                   std::uint64_t from, const root_source& root,
                                   const std::function<bool()>& intact) {
  begin(timeline, step);
  auto first = begun_->left;
  while (first > 0 && begin_of(first - 1) >= from) --first;
  apply_blocks(first, shape, root, nullptr); // the other cores compute
  if (intact && !intact()) begun_->is_intact = false;
}

result<std::optional<step_metrics>> shard_parameters::apply(timeline_id timeline, step_id step,
                                                            const step_shape& shape, const root_source& root,
                                                            const std::function<bool()>& intact) {
  begin(timeline, step);
  apply_blocks(0, shape, root, team_.get());
  const auto done = *begun_;
  const bool is_intact = done.is_intact && (!intact || intact());
  if (is_intact && done.is_finite) {
    begun_.reset();
    writer_.publish();
    return done.metrics;
  }
  give_up();
  return is_intact ? fail(error_code::diverged, std::string{protocol::sum_diverged})
                   : fail(error_code::protocol,
                          fmt::format("the gradient of step {} changed while it was applied", step));
}

result<std::string> shard_parameters::digests(std::uint32_t first, std::uint32_t count) const {
  if (first < range_.first_block || count > range_.last_block - first || first > range_.last_block)
    return fail(error_code::bad_usage, fmt::format("blocks [{}, {}) are not in [{}, {})", first,
                                                   first + count, range_.first_block, range_.last_block));
  std::string all;
  for (auto index = first; index < first + count; ++index) {
    const auto& owned = blocks_[index - range_.first_block];
    all += common::block_digest(index, writer_.current().subspan(owned.offset, owned.block.size),
                                std::span{state_}.subspan(owned.state_offset, state_floats(owned)));
  }
  return all;
}

} // namespace dlrun::ps_shard
