#include "actors/ps_shard/copy_book.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::ps_shard {
namespace {

bool holds(const protocol::version_set& set, const protocol::version_range& range) {
  return std::ranges::any_of(
      set, [&](const auto& one) { return one.first <= range.first && range.last <= one.last; });
}

} // namespace

void copy_book::restart(protocol::history history, version_id version) {
  history_ = std::move(history);
  logged_ = committed_ = version;
  snapshots_.clear();
}

released_versions copy_book::on_logged(version_id version) {
  logged_ = std::max(logged_, version);
  return release();
}

released_versions copy_book::on_snapshot(version_id version) {
  snapshots_.insert(version);
  return release();
}

released_versions copy_book::on_keeper(dlrun::incarnation runs) {
  if (standing_ && standing_->incarnation != runs) standing_.reset();
  if (counted_ == runs) return {};
  counted_ = {};
  return release();
}

/// R22: counted before anybody is told of it.
released_versions copy_book::on_standing(const protocol::copy_standing& standing, const own_store& mine) {
  standing_ = standing;
  const bool is_early = is_planted(bug_, protocol::planted_bug::count_early);
  if (counted_.value == 0 && (is_early || holds_all(mine))) counted_ = standing.incarnation;
  return release();
}

/// R16, R26: of a timeline that was left counts what is below its branch.
version_id copy_book::end_of_copy() const {
  if (!standing_ || standing_->incarnation != counted_) return {};
  const auto newest = protocol::newest_timeline(history_);
  if (standing_->timeline == newest || is_planted(bug_, protocol::planted_bug::keep_tail))
    return standing_->end;
  if (standing_->timeline > newest) return {};
  const auto branch = protocol::branched_since(history_, standing_->timeline);
  return branch ? std::min(standing_->end, *branch) : standing_->end;
}

/// R23: from the oldest version on, since a way back needs one that all have.
bool copy_book::holds_all(const own_store& mine) const {
  if (!standing_ || standing_->timeline != protocol::newest_timeline(mine.history)) return false;
  if (is_planted(bug_, protocol::planted_bug::newest_base)) return standing_->end >= committed_;
  for (const auto& range : protocol::up_to(mine.restorable, committed_))
    if (!holds(standing_->restorable, range)) return false;
  return std::ranges::all_of(mine.snapshots, [&](const own_snapshot& one) {
    return one.version > committed_ || snapshots_.contains(one.version) ||
           std::ranges::binary_search(standing_->snapshots, one.version);
  });
}

released_versions copy_book::release() {
  released_versions out;
  const bool is_alone = counted_.value == 0 || is_planted(bug_, protocol::planted_bug::commit_own_log);
  const auto committed = is_alone ? logged_ : std::min(logged_, end_of_copy());
  if (committed > committed_) out.committed = committed_ = committed;
  while (!snapshots_.empty()) {
    const auto next = *snapshots_.begin();
    const bool is_copied = is_alone || (standing_ && std::ranges::binary_search(standing_->snapshots, next));
    if (next > committed_ || !is_copied) break;
    out.snapshots.push_back(next);
    snapshots_.erase(snapshots_.begin());
  }
  return out;
}

} // namespace dlrun::ps_shard
