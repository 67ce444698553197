#include "tests/simulation/disk.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::simulation {

using protocol::durability;

version_id simulated_store::open() {
  if (syncs_each_step_) synced_ = appended_;
  return restorable().back().last;
}

protocol::version_set simulated_store::restorable() const {
  protocol::version_set all{{{0}, {0}}};
  for (const auto& [version, image] : snapshots_) insert(all, {version, version});
  const auto bases = all;
  for (const auto& range : bases)
    for (auto base = range.first; base <= range.last; ++base.value) {
      auto end = base.value;
      while (end < appended_ && log_.contains(end)) ++end;
      insert(all, {base, {end}});
    }
  return all;
}

shard_image simulated_store::restore(version_id version) const {
  auto above = snapshots_.upper_bound(version);
  auto from = version_id{0};
  shard_image image{initial(shard_), {}};
  if (above != snapshots_.begin()) {
    --above;
    from = above->first;
    image = above->second;
  }
  for (auto step = from.value; step < version.value; ++step) {
    const auto& one = log_.at(step);
    image.content = update(image.content, one.root, one.what.coupled, one.what.revision);
    image.ledger = one.what.ledger;
  }
  return image;
}

ps_shard::loaded_standing simulated_store::describe(version_id version) const {
  ps_shard::loaded_standing found;
  found.history = history_;
  found.version = version;
  found.restorable = restorable();
  found.serves_previous = version.value > 0 && contains(found.restorable, {version.value - 1});
  for (const auto& [snapshotted, image] : snapshots_) found.snapshots.push_back(snapshotted);
  for (const auto& [step, one] : log_)
    if (!one.what.partials.empty()) found.partials[{step}] = one.what.partials;
  found.ledger = restore(version).ledger;
  return found;
}

void simulated_store::append(const ps_shard::append& record, value root) {
  log_[record.step.value] = {record, root};
  appended_ = record.step.value + 1;
}

void simulated_store::add_snapshot(version_id version, const shard_image& image) {
  snapshots_[version] = image;
}

void simulated_store::drop_below(version_id version, std::optional<version_id> kept) {
  std::erase_if(snapshots_, [&](const auto& one) { return one.first < version && one.first != kept; });
  log_.erase(log_.begin(), log_.lower_bound(version.value));
}

void simulated_store::rewind(const protocol::history& history, version_id version, bool keeps_snapshots) {
  history_ = history;
  truncate(version, keeps_snapshots);
}

void simulated_store::truncate(version_id version, bool keeps_snapshots) {
  log_.erase(log_.lower_bound(version.value), log_.end());
  appended_ = synced_ = mode_ == durability::every_step ? version.value : 0;
  if (!keeps_snapshots) snapshots_.erase(snapshots_.upper_bound(version), snapshots_.end());
}

std::uint64_t simulated_store::committed() const {
  if (mode_ == durability::snapshots) return newest_snapshot().value_or(version_id{0}).value;
  return syncs_each_step_ ? synced_ : appended_;
}

const shard_image* simulated_store::snapshot(version_id version) const {
  const auto at = snapshots_.find(version);
  return at == snapshots_.end() ? nullptr : &at->second;
}

std::optional<version_id> simulated_store::newest_snapshot() const {
  if (snapshots_.empty()) return std::nullopt;
  return snapshots_.rbegin()->first;
}

void simulated_store::cut_power(random_source& random) {
  if (mode_ == durability::every_step && !syncs_each_step_) identity = 0; // another boot
  if (appended_ > synced_) appended_ = synced_ + random.below(appended_ - synced_ + 1);
  log_.erase(log_.lower_bound(appended_), log_.end());
}

void simulated_store::damage_newest_snapshot() {
  identity = 0;
  if (!snapshots_.empty()) snapshots_.erase(std::prev(snapshots_.end()));
}

} // namespace dlrun::simulation
