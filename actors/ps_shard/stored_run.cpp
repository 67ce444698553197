#include "actors/ps_shard/stored_run.hpp"

#include "actors/ps_shard/durable_state.hpp"
#include "actors/ps_shard/stored_history.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

using store_list = std::vector<std::unique_ptr<persistence::shard_store>>;

/// The history with the newest timeline: a shard that died before it could go back lacks the end of it.
protocol::history newest_history(const store_list& stores) {
  auto newest = protocol::first_history();
  for (const auto& store : stores)
    if (auto own = history_from(store->history());
        protocol::newest_timeline(own) > protocol::newest_timeline(newest))
      newest = std::move(own);
  return newest;
}

/// What a shard leads to of the training as `newest` tells it.
protocol::version_set versions_of(const persistence::shard_store& store, const protocol::history& newest) {
  protocol::version_set all{{{0}, {0}}};
  for (const auto& range : store.restorable()) protocol::insert(all, {range.first, range.last});
  const auto own = protocol::newest_timeline(history_from(store.history()));
  const auto branched = protocol::branched_since(newest, own);
  return branched ? protocol::up_to(std::move(all), *branched) : all;
}

/// Restores each shard by `restore_shard(store, parameters, history)` and puts the parts together.
template <class Function>
result<stored_version> assemble(const store_list& stores,
                                const std::shared_ptr<const common::job_context>& job,
                                Function restore_shard) {
  DLRUN_CHECK(job->shards.size() == stores.size(), "{} PS shards in the job, {} stores", job->shards.size(),
              stores.size());
  const auto& layout = job->model->layout();
  stored_version made{std::vector<float>(layout.flat_size()), {}};
  for (std::uint32_t shard = 0; shard < stores.size(); ++shard) {
    auto parameters = shard_parameters::create_empty(job, {shard});
    if (!parameters) return tl::unexpected(parameters.error());
    const auto restored = restore_shard(*stores[shard], *parameters, history_from(stores[shard]->history()));
    if (!restored) return tl::unexpected(restored.error());
    const auto& range = parameters->range();
    const auto floats = parameters->current().first(range.size);
    std::ranges::copy(floats, made.parameters.begin() + static_cast<std::ptrdiff_t>(range.offset));
    auto digests = parameters->digests(range.first_block, range.last_block - range.first_block);
    if (!digests) return tl::unexpected(digests.error());
    made.block_digests += *digests;
  }
  return made;
}

} // namespace

stored_run::stored_run(store_list stores)
    : stores_(std::move(stores)) {
  const auto newest = newest_history(stores_);
  versions_ = versions_of(*stores_.front(), newest);
  for (const auto& store : stores_) versions_ = protocol::common(versions_, versions_of(*store, newest));
}

result<stored_run> stored_run::open(const std::filesystem::path& run_dir, std::uint32_t ps_shards) {
  DLRUN_CHECK(ps_shards > 0, "a run without PS shards");
  store_list stores;
  for (std::uint32_t shard = 0; shard < ps_shards; ++shard) {
    persistence::shard_store_options options;
    options.directory = store_directory(run_dir, {shard}).string();
    options.read_only = true;
    auto store = persistence::shard_store::open(options);
    if (!store) return tl::unexpected(store.error());
    stores.push_back(std::move(*store));
  }
  return stored_run{std::move(stores)};
}

bool stored_run::is_whole(version_id version) const {
  if (version.value == 0) return true;
  return protocol::contains(versions_, version) && std::ranges::all_of(stores_, [&](const auto& store) {
           const auto snapshots = store->snapshots();
           return std::ranges::find(snapshots, version, &persistence::snapshot_info::version) !=
                  snapshots.end();
         });
}

std::vector<std::string> stored_run::damaged() const {
  std::vector<std::string> lines;
  for (const auto& store : stores_)
    lines.insert(lines.end(), store->found().damaged.begin(), store->found().damaged.end());
  return lines;
}

result<stored_version> stored_run::load_whole(const std::shared_ptr<const common::job_context>& job,
                                              version_id version) const {
  return assemble(stores_, job, [&](auto& store, auto& parameters, const auto& history) {
    return restore_without_log(store, parameters, job->sampler, history, version);
  });
}

result<stored_version> stored_run::load(const std::shared_ptr<const common::job_context>& job,
                                        version_id version, spdlog::logger& log) const {
  return assemble(stores_, job, [&](auto& store, auto& parameters, const auto& history) {
    return restore(store, parameters, job->sampler, history, version, damaged_snapshot::leave, log);
  });
}

} // namespace dlrun::ps_shard
