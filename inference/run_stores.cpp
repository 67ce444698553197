#include "inference/run_stores.hpp"

#include "actors/common/history_conversion.hpp"
#include "actors/common/patience.hpp"
#include "inference/rebuilt_part.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::inference {
namespace {

using store_list = std::vector<std::unique_ptr<persistence::shard_store>>;

/// The history with the newest timeline: a shard that died before it could go back lacks the end of
/// it.
protocol::history newest_history(const store_list& stores) {
  auto newest = protocol::first_history();
  for (const auto& store : stores)
    if (auto own = common::history_from(store->history());
        protocol::newest_timeline(own) > protocol::newest_timeline(newest))
      newest = std::move(own);
  return newest;
}

/// What a shard leads to of the training as `newest` tells it.
protocol::version_set versions_of(const persistence::shard_store& store, const protocol::history& newest) {
  protocol::version_set all{{{0}, {0}}};
  for (const auto& range : store.restorable()) protocol::insert(all, range);
  const auto own = protocol::newest_timeline(common::history_from(store.history()));
  const auto branched = protocol::branched_since(newest, own);
  return branched ? protocol::up_to(std::move(all), *branched) : all;
}

/// One rule a revision.
result<std::vector<engine::update_rule>> rules_of(const training_recipe& recipe) {
  engine::training_length length;
  if (recipe.sampler) length = {recipe.sampler->steps_per_epoch(), recipe.sampler->options().epochs};
  std::vector<engine::update_rule> rules;
  for (const auto& revision : recipe.revisions) {
    auto rule = engine::update_rule::build(revision, length);
    if (!rule) return tl::unexpected(rule.error());
    rules.push_back(std::move(*rule));
  }
  return rules;
}

} // namespace

run_stores::run_stores(store_list stores)
    : stores_(std::move(stores)) {
  const auto newest = newest_history(stores_);
  versions_ = versions_of(*stores_.front(), newest);
  for (const auto& store : stores_) versions_ = protocol::common(versions_, versions_of(*store, newest));
}

result<run_stores> run_stores::open(const std::filesystem::path& run_dir, std::uint32_t ps_shards) {
  DLRUN_CHECK(ps_shards > 0, "a run without PS shards");
  store_list stores;
  for (std::uint32_t shard = 0; shard < ps_shards; ++shard) {
    persistence::shard_store_options options;
    options.directory = common::store_directory(run_dir, {shard}).string();
    options.read_only = true;
    auto store = common::try_patiently(common::patience_with_the_dying, {},
                                       [&] { return persistence::shard_store::open(options); });
    if (!store) return tl::unexpected(store.error());
    stores.push_back(std::move(*store));
  }
  return run_stores{std::move(stores)};
}

bool run_stores::is_whole(version_id version) const {
  if (version.value == 0) return true;
  return protocol::contains(versions_, version) && std::ranges::all_of(stores_, [&](const auto& store) {
           const auto snapshots = store->snapshots();
           return std::ranges::find(snapshots, version, &persistence::snapshot_info::version) !=
                  snapshots.end();
         });
}

std::vector<std::string> run_stores::damaged() const {
  std::vector<std::string> lines;
  for (const auto& store : stores_)
    lines.insert(lines.end(), store->found().damaged.begin(), store->found().damaged.end());
  return lines;
}

result<rebuilt_version> run_stores::load(const training_recipe& recipe, version_id version,
                                         std::vector<std::string>& damaged) const {
  const auto& layout = recipe.model->layout();
  const auto rules = rules_of(recipe);
  if (!rules) return tl::unexpected(rules.error());
  rebuilt_version made{std::vector<float>(layout.flat_size()), {}};
  const auto ranges = engine::place_blocks(layout, static_cast<std::uint32_t>(stores_.size()));
  for (std::size_t shard = 0; shard < stores_.size(); ++shard) {
    const engine::block_updates updates{layout, ranges[shard], *rules};
    rebuilt_part part{*stores_[shard], recipe, ranges[shard], updates};
    if (auto loaded = part.load(version, damaged); !loaded) return tl::unexpected(loaded.error());
    std::ranges::copy(part.floats(),
                      made.parameters.begin() + static_cast<std::ptrdiff_t>(ranges[shard].offset));
    made.block_digests += part.digests();
  }
  return made;
}

} // namespace dlrun::inference
