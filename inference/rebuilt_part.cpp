#include "inference/rebuilt_part.hpp"

#include "actors/common/history_conversion.hpp"
#include "weights/initial_weights.hpp"
#include "weights/model_weights.hpp"

#include <algorithm>
#include <cstring>

namespace dlrun::inference {

rebuilt_part::rebuilt_part(const persistence::shard_store& store, const training_recipe& recipe,
                           const engine::shard_range& range, const engine::block_updates& updates)
    : store_{store}
    , recipe_{recipe}
    , range_{range}
    , updates_{updates}
    , history_{common::history_from(store.history())}
    , floats_(range.size)
    , state_(updates.state_floats()) {}

result<void> rebuilt_part::load(version_id version, std::vector<std::string>& damaged) {
  auto bases = common::bases_for(store_, version);
  if (!bases.empty() && bases.back().version == version)
    std::rotate(bases.begin(), bases.end() - 1, bases.end());
  if (!recipe_.sampler) std::erase_if(bases, [&](const auto& base) { return base.version != version; });
  error why{error_code::storage_damaged, fmt::format("nothing on disk leads to version {}", version)};
  for (const auto& base : bases) {
    auto made = load_from(base, version);
    if (made) return made;
    why = made.error();
    const bool is_new = std::ranges::find(damaged, why.message) == damaged.end();
    if (why.code == error_code::storage_damaged && is_new) damaged.push_back(why.message);
  }
  return tl::unexpected(why);
}

result<void> rebuilt_part::load_from(const common::base_version& base, version_id version) {
  if (auto loaded = base.is_snapshot ? load_snapshot(base.version) : load_initial(); !loaded) return loaded;
  for (auto step = step_from(base.version); step < step_from(version); ++step.value)
    if (auto made = make_again(step); !made) return made;
  return {};
}

result<void> rebuilt_part::load_initial() {
  const auto& train = recipe_.revisions.front();
  const auto& layout = recipe_.model->layout();
  std::ranges::fill(floats_, 0.0F);
  recipe_.model->initialise_part(train.seed(), range_.offset, floats_);
  updates_.start_state(state_);
  if (!train.has_init_from()) return {};
  const auto initial = weights::open_initial_weights(train, layout);
  if (!initial) return tl::unexpected(initial.error());
  return weights::read_part(initial->file, layout, range_.offset, floats_);
}

result<void> rebuilt_part::load_snapshot(version_id version) {
  auto reader = store_.open_snapshot(version);
  if (!reader) return tl::unexpected(reader.error());
  const auto extra = common::decode_snapshot_extra(reader->metadata(), range_, updates_.image_floats(),
                                                   recipe_.model->metrics().floats());
  if (!extra) return tl::unexpected(extra.error());
  std::ranges::fill(floats_, 0.0F); // the padding between tensors
  const auto source = common::floats_of(*reader);
  for (const auto& owned : updates_.blocks()) {
    if (auto read = source(std::span{floats_}.subspan(owned.offset, owned.block.size)); !read) return read;
    if (auto read = source(std::span{state_}.subspan(owned.state_offset, owned.state_floats)); !read)
      return read;
  }
  return common::check_read_to_end(*reader);
}

result<void> rebuilt_part::make_again(step_id step) {
  const auto record = store_.read(step);
  if (!record) return tl::unexpected(record.error());
  const auto extra = common::decode_step_extra(record->head.extra);
  if (!extra) return tl::unexpected(extra.error());
  if (record->payload.size() != floats_.size() * sizeof(float) || extra->revision >= recipe_.revisions.size())
    return fail(error_code::storage_damaged,
                fmt::format("the log record of step {} has {} bytes, not {}, and is of revision {} of {}",
                            step, record->payload.size(), floats_.size() * sizeof(float), extra->revision,
                            recipe_.revisions.size()));
  std::vector<float> root(floats_.size());
  std::memcpy(root.data(), record->payload.data(), record->payload.size());
  const auto shape = common::shape_of(*recipe_.sampler, step, extra->revision,
                                      common::parked_on(history_, record->head.timeline), extra->coupled);
  for (const auto& owned : updates_.blocks()) // numbers that are none were told when it was trained
    updates_.update(owned, step, shape, std::span{root}.subspan(owned.offset, owned.block.size), floats_,
                    floats_, state_);
  return {};
}

std::string rebuilt_part::digests() const {
  std::string all;
  auto number = range_.first_block;
  for (const auto& owned : updates_.blocks())
    all += common::block_digest(number++, std::span{floats_}.subspan(owned.offset, owned.block.size),
                                std::span{state_}.subspan(owned.state_offset, owned.state_floats));
  return all;
}

} // namespace dlrun::inference
