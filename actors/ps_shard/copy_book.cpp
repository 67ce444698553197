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

released_versions copy_book::on_snapshot(timeline_id of, version_id version) {
  if (of != timeline() && !is_planted(bug_, protocol::planted_bug::late_snapshot)) return {};
  snapshots_.insert(version);
  return release();
}

released_versions copy_book::on_keeper(dlrun::incarnation runs) {
  if (standing_ && standing_->incarnation != runs) {
    standing_.reset();
    is_filled_late_ = false;
  }
  if (holding_ != runs) holding_ = counted_ = {};
  return release();
}

/// R22: it holds back before it counts, and counts before anybody is told of it.
released_versions copy_book::on_standing(const protocol::copy_standing& standing, const own_store& mine,
                                         protocol::time_point now) {
  if (!standing_) {
    filled_since_ = now;
    behind_since_.reset();
    let_go_at_.reset();
  }
  standing_ = standing;
  const bool gets_on = standing.failure.empty() && (!let_go_at_ || standing.end > *let_go_at_);
  const bool is_nearly = is_nearly_there(mine, now);
  const bool is_early = is_planted(bug_, protocol::planted_bug::count_early);
  const bool is_late = now - filled_since_ >= behind_max;
  if (gets_on && is_late && !is_planted(bug_, protocol::planted_bug::drop_base)) is_filled_late_ = true;
  if (holding_.value == 0 && (is_early || holds_all(mine) || (gets_on && is_nearly)))
    holding_ = standing.incarnation;
  if (holding_ == standing.incarnation && (is_early || holds_all(mine))) counted_ = holding_;
  return release();
}

released_versions copy_book::let_go() {
  if (counted_.value != 0) return {};
  holding_ = {};
  is_filled_late_ = false;
  if (standing_) let_go_at_ = standing_->end;
  return release();
}

bool copy_book::is_nearly_there(const own_store& mine, protocol::time_point now) {
  if (is_planted(bug_, protocol::planted_bug::hold_nothing)) return false;
  const auto end = standing_->end;
  const bool is_filled = is_of_timeline(mine) && leads_to(std::min(committed_, end), mine) &&
                         std::ranges::all_of(mine.restorable, [&](const auto& range) {
                           return range.first <= end || range.first > committed_;
                         });
  if (!is_filled) {
    behind_since_.reset();
    return false;
  }
  if (!behind_since_) behind_since_ = now;
  return now - *behind_since_ >= behind_max ||
         (committed_.value <= end.value + lag_max && has_told_snapshots(mine));
}

/// R16, R26: of a timeline that was left counts what is below its branch.
version_id copy_book::end_of_copy() const {
  if (!standing_) return {};
  const auto newest = timeline();
  if (standing_->timeline == newest || is_planted(bug_, protocol::planted_bug::keep_tail))
    return standing_->end;
  if (standing_->timeline > newest) return {};
  const auto branch = protocol::branched_since(history_, standing_->timeline);
  return branch ? std::min(standing_->end, *branch) : standing_->end;
}

bool copy_book::is_copied(version_id snapshot) const {
  return snapshot <= end_of_copy() && std::ranges::binary_search(standing_->snapshots, snapshot);
}

bool copy_book::holds_all(const own_store& mine) const {
  if (!standing_ || !is_of_timeline(mine)) return false;
  if (is_planted(bug_, protocol::planted_bug::newest_base)) return standing_->end >= committed_;
  return leads_to(committed_, mine) && has_told_snapshots(mine);
}

bool copy_book::is_of_timeline(const own_store& mine) const {
  return standing_->timeline == protocol::newest_timeline(mine.history);
}

/// R23: from the oldest version on, since a way back needs one that all have. R24: nobody goes back
/// below a floor that a copy which counts has heard of.
version_id copy_book::wanted_from() const {
  const bool counts = counted_.value != 0 && counted_ == standing_->incarnation;
  return counts ? standing_->floor : version_id{};
}

bool copy_book::leads_to(version_id version, const own_store& mine) const {
  const auto from = wanted_from();
  const auto wanted = protocol::up_to(mine.restorable, version);
  return std::ranges::all_of(wanted, [&](const auto& range) {
    return range.last < from || holds(standing_->restorable, {std::max(range.first, from), range.last});
  });
}

bool copy_book::has_told_snapshots(const own_store& mine) const {
  const auto from = wanted_from();
  return std::ranges::all_of(mine.snapshots, [&](version_id one) {
    return one < from || one > committed_ || snapshots_.contains(one) ||
           std::ranges::binary_search(standing_->snapshots, one);
  });
}

released_versions copy_book::release() {
  released_versions out;
  const bool is_planted_alone = is_planted(bug_, protocol::planted_bug::commit_own_log);
  const auto committed = holding_.value == 0 || is_planted_alone ? logged_ : std::min(logged_, end_of_copy());
  if (has_log_ && committed > committed_) out.committed = committed_ = committed;
  while (!snapshots_.empty()) {
    const auto next = *snapshots_.begin();
    const bool is_led_to = !has_log_ || next <= committed_;
    const bool waits = holds_snapshots() && !is_planted_alone && !is_copied(next);
    if (!is_led_to || waits) break;
    out.snapshots.push_back(next);
    if (!has_log_) logged_ = committed_ = std::max(committed_, next);
    snapshots_.erase(snapshots_.begin());
  }
  return out;
}

} // namespace dlrun::ps_shard
