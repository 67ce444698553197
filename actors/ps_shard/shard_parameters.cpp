#include "actors/ps_shard/shard_parameters.hpp"

#include "actors/protocol/end_messages.hpp"
#include "actors/ps_shard/initial_values.hpp"
#include "base/not_finite.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

result<shard_parameters> shard_parameters::create(std::shared_ptr<const common::job_context> job,
                                                  ps_shard_id shard) {
  auto made = create_empty(std::move(job), shard);
  if (!made) return made;
  if (auto filled = made->reset(timeline_id{0}); !filled) return tl::unexpected(filled.error());
  return made;
}

result<shard_parameters> shard_parameters::create_empty(std::shared_ptr<const common::job_context> job,
                                                        ps_shard_id shard, common::retained_memory memory) {
  std::vector<engine::update_rule> rules;
  for (std::uint64_t revision = 0; revision <= job->revision(); ++revision) {
    auto rule = job->make_update_rule(revision);
    if (!rule) return tl::unexpected(rule.error());
    rules.push_back(std::move(*rule));
  }
  const auto& range = job->shards.at(shard.value);
  engine::block_updates updates{job->model->layout(), range, std::move(rules)};
  version_notes notes{range, updates.image_floats(), job->model->metrics().floats()};
  auto writer = memory.parameters ? transport::parameter_writer::create_in(std::move(memory.parameters),
                                                                           range.size, range.offset)
                                  : transport::parameter_writer::create(range.size, range.offset);
  if (!writer) return tl::unexpected(writer.error());
  auto state = memory.state ? optimizer_state::retained_in(std::move(memory.state), updates.state_floats(),
                                                           notes.bytes_max())
                            : optimizer_state::in_place(updates.state_floats());
  if (!state) return tl::unexpected(state.error());
  return shard_parameters{std::move(job),    shard,           std::move(*writer), std::move(updates),
                          std::move(*state), std::move(notes)};
}

shard_parameters::shard_parameters(std::shared_ptr<const common::job_context> job, ps_shard_id shard,
                                   transport::parameter_writer writer, engine::block_updates updates,
                                   optimizer_state state, version_notes notes)
    : job_{std::move(job)}
    , range_{job_->shards.at(shard.value)}
    , writer_{std::move(writer)}
    , updates_{std::move(updates)}
    , state_{std::move(state)}
    , notes_{std::move(notes)} {}

// ---- whole states

result<void> shard_parameters::reset(timeline_id timeline) {
  give_up();
  updates_.start_state(state_.begin(timeline, version_id{0}).after);
  if (auto filled = initial_values(*job_, range_, writer_.begin_write(timeline, version_id{0})); !filled) {
    withdraw();
    return filled;
  }
  state_.publish({});
  writer_.publish();
  return {};
}

void shard_parameters::withdraw() {
  give_up();
  state_.withdraw();
  writer_.withdraw_all();
}

result<void> shard_parameters::load(timeline_id timeline, version_id version, const state_source& source) {
  give_up();
  const auto into = writer_.begin_write(timeline, version);
  const auto state = state_.begin(timeline, version).after;
  for (const auto& owned : updates_.blocks()) {
    auto read = source(into.subspan(owned.offset, owned.block.size));
    if (read) read = source(state.subspan(owned.state_offset, owned.state_floats));
    if (read) continue;
    withdraw();
    return read;
  }
  state_.publish({});
  writer_.publish();
  return {};
}

retained_shape shard_parameters::retained() const {
  return {range_, updates_.state_floats(), updates_.image_floats(), metric_sums(), notes_.bytes_max()};
}

void shard_parameters::take_over(const retained_version& former) {
  withdraw();
  const auto take = [&](version_id version) {
    std::ranges::copy(former.parameters(version), writer_.begin_write(former.timeline(), version).begin());
  };
  // Of that nobody needs the state (R8): no version is whole here before the newest is.
  if (former.has_previous()) {
    take(version_id{former.version().value - 1});
    writer_.publish();
  }
  std::ranges::copy(former.state(), state_.begin(former.timeline(), former.version()).after.begin());
  take(former.version());
  state_.publish(encode(former.extra()));
  writer_.publish();
  const auto& extra = former.extra();
  notes_.restart(extra.snapshot.metrics, extra.snapshot.ledger, extra.partials);
}

result<void> shard_parameters::extract(const state_source& source, std::span<float> out) const {
  DLRUN_CHECK(out.size() == range_.size, "{} floats of room for {} parameters", out.size(), range_.size);
  std::ranges::fill(out, 0.0F); // the padding between tensors
  std::vector<float> state;
  for (const auto& owned : updates_.blocks()) {
    state.resize(owned.state_floats);
    if (auto read = source(out.subspan(owned.offset, owned.block.size)); !read) return read;
    if (auto read = source(state); !read) return read;
  }
  return {};
}

std::shared_ptr<copy_on_write_image> shard_parameters::begin_image(std::size_t pool_blocks) {
  std::vector<block_memory> memory;
  memory.reserve(updates_.blocks().size());
  for (const auto& owned : updates_.blocks())
    memory.push_back({writer_.current().subspan(owned.offset, owned.block.size),
                      state_.current().subspan(owned.state_offset, owned.state_floats)});
  auto image = std::make_shared<copy_on_write_image>(std::move(memory), pool_blocks);
  images_.push_back({image, writer_.current().data()});
  return image;
}

void shard_parameters::preserve(std::size_t block) {
  for (const auto& one : images_) {
    if (state_.is_retained() && one.parameters != begun_->out.data())
      continue; // nothing of it is written yet
    if (const auto image = one.of.lock()) image->preserve(block);
  }
}

// ---- one step

norm_partials shard_parameters::measure(const step_shape& shape, std::span<const float> root) const {
  DLRUN_CHECK(root.size() == range_.size, "a root has {} floats, the shard {}", root.size(), range_.size);
  norm_partials partials;
  for (const auto& owned : updates_.blocks()) {
    if (owned.block.kind != tensor_kind::parameter) continue;
    const auto part = root.subspan(owned.offset, owned.block.size);
    const double sum =
        shape.records == 0 ? 0 : updates_.rule(shape.revision).sum_of_squares(shape.records, part);
    partials.push_back(std::bit_cast<std::uint64_t>(sum));
  }
  return partials;
}

step_metrics shard_parameters::metrics_in(std::span<const float> block) const {
  using index = engine::parameter_layout::metric_index;
  const auto sums = block.subspan(index::first_metric, metric_sums());
  const float records = block[index::records];
  const bool is_count = records >= 0 && records < 0x1p64F; // else the step diverged, and is not published
  return {
      block[index::loss_sum], is_count ? static_cast<std::uint64_t>(records) : 0, {sums.begin(), sums.end()}};
}

void shard_parameters::begin(timeline_id timeline, step_id step) {
  if (begun_ && begun_->timeline == timeline && begun_->step == step) return;
  DLRUN_CHECK(!begun_, "step {} is begun before step {} is done", step, begun_->step);
  begun_.emplace(begun_step{.timeline = timeline,
                            .step = step,
                            .out = writer_.begin_write(timeline, version_after(step)),
                            .state = state_.begin(timeline, version_after(step)),
                            .left = updates_.blocks().size(),
                            .metrics = {}});
  std::erase_if(images_, [](const auto& image) { return image.of.expired(); });
}

void shard_parameters::give_up() {
  if (begun_) {
    writer_.abandon();
    state_.abandon();
  }
  begun_.reset();
}

/// Padding belongs to the block before it, so that all of a root is asked for.
std::uint64_t shard_parameters::begin_of(std::size_t block) const {
  if (block == 0) return 0;
  return block == updates_.blocks().size() ? range_.size : updates_.blocks()[block].offset;
}

/// Blocks [first, begun_->left).
void shard_parameters::apply_blocks(std::size_t first, const step_shape& shape, const root_source& root,
                                    base::thread_team* team) {
  auto& now = *begun_;
  std::atomic<bool> is_finite = true;
  std::atomic<std::size_t> first_spoiled = now.first_spoiled;
  const auto note_spoiled = [&](std::size_t block) {
    auto known = first_spoiled.load();
    while (block < known && !first_spoiled.compare_exchange_weak(known, block)) {
    }
  };
  const auto body = [&](std::size_t index) {
    const auto number = first + index;
    const auto& owned = updates_.blocks()[number];
    const auto begin = begin_of(number), end = begin_of(number + 1);
    const auto part = root(begin, end);
    DLRUN_CHECK(part.size() == end - begin, "floats [{}, {}) of a root are {}", begin, end, part.size());
    if (!kernels::cpu::all_finite(part)) is_finite = false;
    const auto sums = part.subspan(owned.offset - begin, owned.block.size);
    preserve(number);
    if (!updates_.update(owned, now.step, shape, sums, writer_.current(), now.out, now.state))
      note_spoiled(number);
    if (owned.block.kind == tensor_kind::metric) now.metrics = metrics_in(sums); // there is one such block
  };
  const auto count = now.left - first;
  if (team)
    team->for_each(count, body);
  else
    for (std::size_t index = 0; index < count; ++index) body(index);
  now.left = first;
  now.is_finite = now.is_finite && is_finite;
  now.first_spoiled = first_spoiled;
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
  const bool is_spoiled = done.first_spoiled < updates_.blocks().size();
  if (is_intact && done.is_finite && !is_spoiled) {
    begun_.reset();
    if (state_.is_retained()) state_.publish(notes_.after(step, job_->sampler.epoch_of(step), done.metrics));
    writer_.publish(); // now it is whole (R36)
    return done.metrics;
  }
  const auto why = is_spoiled && done.is_finite
                       ? spoiled(done.first_spoiled)
                       : error{error_code::diverged, std::string{protocol::sum_diverged}};
  give_up();
  if (is_intact) return tl::unexpected(why);
  return fail(error_code::protocol,
              fmt::format("the gradient of step {} changed while it was applied", step));
}

/// Names the first number of a block that the update made none.
error shard_parameters::spoiled(std::size_t block) const {
  const auto& owned = updates_.blocks()[block];
  const auto& tensor = job_->model->layout().tensors()[owned.block.tensor];
  const auto wrong = base::find_not_finite(begun_->out.subspan(owned.offset, owned.block.size));
  DLRUN_CHECK(wrong, "all of block {} is finite", block);
  const auto place = owned.block.offset - tensor.offset + wrong->place;
  return {error_code::diverged,
          fmt::format("the gradient is finite, but the update makes {} of '{}' at {}: the optimizer divides "
                      "by zero (an eps of 0?) or grows beyond a float",
                      wrong->text, tensor.name, to_string(element_index(tensor.extents, place)))};
}

result<std::string> shard_parameters::digests(std::uint32_t first, std::uint32_t count) const {
  if (first < range_.first_block || count > range_.last_block - first || first > range_.last_block)
    return fail(error_code::bad_usage, fmt::format("blocks [{}, {}) are not in [{}, {})", first,
                                                   first + count, range_.first_block, range_.last_block));
  std::string all;
  for (auto index = first; index < first + count; ++index) {
    const auto& owned = updates_.blocks()[index - range_.first_block];
    all += common::block_digest(index, writer_.current().subspan(owned.offset, owned.block.size),
                                state_.current().subspan(owned.state_offset, owned.state_floats));
  }
  return all;
}

} // namespace dlrun::ps_shard
