#include "actors/ps_shard/version_book.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

/// Of versions asked for and not passed; a dispatcher has one on its mind, an older one may have
/// had another.
constexpr std::size_t asked_max = 4;

} // namespace

version_book::version_book(std::set<version_id> named)
    : named_(std::move(named)) {
  restart({{{0}, {0}}}, {});
}

void version_book::restart(protocol::version_set restorable, const std::vector<version_id>& snapshots) {
  restorable_ = std::move(restorable);
  protocol::insert(restorable_, {{0}, {0}});
  snapshots_ = {snapshots.begin(), snapshots.end()};
  snapshots_.erase(version_id{0});
  in_work_.clear();
  asked_.clear();
  pin_.reset();
}

std::vector<version_id> version_book::planned(version_id applied) const {
  std::vector<version_id> all(in_work_.begin(), in_work_.end());
  all.insert(all.end(), asked_.upper_bound(applied), asked_.end());
  return all;
}

void version_book::ask_for(version_id version) {
  asked_.insert(version);
  if (asked_.size() > asked_max) asked_.erase(std::prev(asked_.end()));
}

bool version_book::is_wanted(version_id version) const {
  return (named_.contains(version) || asked_.contains(version)) && !snapshots_.contains(version) &&
         !in_work_.contains(version);
}

void version_book::begin(version_id version) {
  in_work_.insert(version);
  asked_.erase(version);
}

void version_book::failed(version_id version) { in_work_.erase(version); }

std::vector<version_id> version_book::missing(version_id applied, std::optional<version_id> at_hand) const {
  std::vector<version_id> all;
  for (const auto version : named_)
    if (version.value > 0 && version <= applied && is_wanted(version) &&
        (can_restore(version) || version == at_hand))
      all.push_back(version);
  return all;
}

void version_book::committed(version_id before, version_id version) {
  protocol::insert(restorable_, {before, version});
}

void version_book::snapshot_durable(version_id version) {
  DLRUN_CHECK(in_work_.erase(version) == 1, "a snapshot of version {} is durable that nobody took", version);
  snapshots_.insert(version);
  protocol::insert(restorable_, {version, version});
}

void version_book::set_pin(dlrun::incarnation dispatcher, version_id version) {
  if (!pin_ || dispatcher >= pin_->dispatcher) pin_ = pin{dispatcher, version};
}

std::optional<version_id> version_book::droppable(version_id floor, dlrun::incarnation dispatcher,
                                                  std::optional<version_id> kept) {
  if (pin_ && dispatcher > pin_->dispatcher) pin_.reset(); // whoever asked for it is gone
  auto bound = pin_ ? std::min(floor, pin_->version) : floor;
  const auto above = snapshots_.upper_bound(bound);
  if (above == snapshots_.begin()) return std::nullopt;
  bound = *std::prev(above);
  if (kept && !snapshots_.contains(*kept)) kept.reset(); // only the log leads to it
  const auto is_dropped = [&](version_id one) { return one < bound && one != kept; };
  const bool some = protocol::from(restorable_, bound, kept) != restorable_ ||
                    std::any_of(snapshots_.begin(), snapshots_.end(), is_dropped);
  return some ? std::optional(bound) : std::nullopt;
}

void version_book::dropped_below(version_id version, std::optional<version_id> kept) {
  if (kept && !snapshots_.contains(*kept)) kept.reset();
  restorable_ = protocol::from(std::move(restorable_), version, kept);
  std::erase_if(snapshots_, [&](version_id one) { return one < version && one != kept; });
}

} // namespace dlrun::ps_shard
