/// What a PS shard and its keeper are in the property test of copies: stores as maps, a keeper that
/// is played, and a line that loses, doubles and reorders.
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/ps_shard/copy_stream.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace dlrun::ps_shard::test {

using protocol::copy_kind;

/// Steps, each with the timeline that it was made on: of two on one timeline the bits are the same
/// (R1).
struct played_store {
  protocol::history history = protocol::first_history();
  std::map<std::uint64_t, timeline_id> log{};
  std::map<std::uint64_t, timeline_id> snapshots{}; ///< of a version: that it was made on
  std::uint64_t floor = 0;

  timeline_id timeline() const { return protocol::newest_timeline(history); }
  protocol::version_set restorable() const {
    protocol::version_set all{{{0}, {0}}};
    const auto add = [&](std::uint64_t base) {
      auto end = base;
      while (log.contains(end)) ++end;
      protocol::insert(all, {{base}, {end}});
    };
    add(0);
    for (const auto& [version, made_on] : snapshots) add(version);
    return all;
  }
  std::uint64_t end() const { return restorable().back().last.value; }
  std::vector<version_id> snapshot_list() const {
    std::vector<version_id> all;
    for (const auto& [version, made_on] : snapshots) all.push_back({version});
    return all;
  }
  /// That such a snapshot holds: of versions up to a branch both timelines have the same.
  timeline_id made_on(std::uint64_t version) const {
    timeline_id made{};
    for (const auto& entry : history)
      if (entry.branch.value < version) made = entry.timeline;
    return made;
  }
  void go_back(const protocol::history& to, std::uint64_t version) {
    history = to;
    log.erase(log.lower_bound(version), log.end());
    snapshots.erase(snapshots.upper_bound(version), snapshots.end());
    floor = std::min(floor, version);
  }
  void drop_below(std::uint64_t version) {
    auto base = floor;
    for (const auto& [one, made_on] : snapshots)
      if (one <= version) base = std::max(base, one);
    floor = base;
    log.erase(log.begin(), log.lower_bound(base));
    snapshots.erase(snapshots.begin(), snapshots.lower_bound(base));
  }
  own_store described() const {
    own_store all{history, restorable(), {}, snapshot_list(), {floor}};
    for (const auto& [step, made_on] : log) {
      if (all.logged.empty() || all.logged.back().last.value != step) all.logged.push_back({{step}, {step}});
      all.logged.back().last = {step + 1};
    }
    return all;
  }
};

/// Of so many parts.
inline std::uint64_t parts_of(const copy_item& item) {
  switch (item.kind) {
  case copy_kind::record: return 1 + item.version.value % 3;
  case copy_kind::snapshot: return 1 + item.version.value % 6;
  default: return 1;
  }
}

struct played_part {
  incarnation keeper, shard;
  std::uint64_t stream = 0, number = 0;
  copy_item item;
  std::uint64_t index = 0; ///< of the part in its piece
  timeline_id made_on;
  protocol::history history;
};

struct played_keeper {
  incarnation self{1};
  played_store store;
  incarnation shard{};
  std::uint64_t stream = 0, taken = 0;
  bool failed = false;
  bool is_full = false; ///< a record fails with its last part
  std::uint64_t record_had = 0, snapshot_had = 0;
  std::uint64_t snapshot_version = 0; ///< that is in hand

  std::optional<protocol::copy_standing> take(const played_part& part) {
    if (part.keeper != self || part.shard < shard) return std::nullopt;
    if (part.shard > shard || part.stream > stream) {
      if (part.item.kind != copy_kind::hello || part.number != 0) return std::nullopt;
      shard = part.shard;
      stream = part.stream;
      taken = record_had = snapshot_had = 0;
      failed = false;
    }
    if (part.stream != stream || part.number != taken || failed) return std::nullopt;
    if (follow(part))
      ++taken;
    else
      failed = true;
    if (failed) record_had = snapshot_had = 0;
    return protocol::copy_standing{.incarnation = self,
                                   .shard = shard,
                                   .stream = stream,
                                   .taken = taken,
                                   .timeline = store.timeline(),
                                   .end = {store.end()},
                                   .floor = {store.floor},
                                   .restorable = store.restorable(),
                                   .snapshots = store.snapshot_list(),
                                   .record_bytes = record_had,
                                   .snapshot_bytes = snapshot_had,
                                   .failure = failed ? "it does not fit" : ""};
  }

  bool follow(const played_part& part) {
    const auto version = part.item.version.value;
    switch (part.item.kind) {
    case copy_kind::hello: return true;
    case copy_kind::floor:
      if (snapshot_had > 0 && snapshot_version < version) return false;
      store.drop_below(version);
      return true;
    case copy_kind::rewind:
      record_had = snapshot_had = 0;
      if (!contains(store.restorable(), part.item.version)) return false;
      store.go_back(part.history, version);
      return true;
    case copy_kind::record: return take_piece(part, record_had);
    case copy_kind::snapshot: return take_piece(part, snapshot_had);
    }
    return false;
  }

  bool take_piece(const played_part& part, std::uint64_t& had) {
    if (part.index != had || part.item.timeline != store.timeline()) return false;
    const auto version = part.item.version.value;
    if (part.item.kind == copy_kind::snapshot) snapshot_version = version;
    if (++had < parts_of(part.item)) return true;
    had = 0;
    if (part.item.kind == copy_kind::record) {
      if (is_full || version > store.end()) return false;
      if (version == store.end()) store.log[version] = part.made_on;
      return true;
    }
    if (store.snapshots.contains(version) || version < store.floor) return false;
    store.snapshots[version] = part.made_on;
    return true;
  }
  /// Another start of it finds a snapshot damaged; where there is a log not one that that begins
  /// with.
  void damage(std::uint64_t which, protocol::durability kept) {
    if (store.snapshots.size() < 2) return;
    const auto one = std::next(store.snapshots.begin(), static_cast<long>(which % store.snapshots.size()));
    auto without = store;
    without.snapshots.erase(one->first);
    if (kept == protocol::durability::snapshots || without.restorable() == store.restorable())
      store = without;
  }
};

/// What is on its way in one direction.
template <class Message>
class played_line {
public:
  void push(Message one) { all_.push_back(std::move(one)); }
  std::size_t waiting() const { return all_.size(); }
  /// @param is_bad it loses, doubles and reorders
  std::optional<Message> next(std::mt19937_64& random, bool is_bad) {
    if (all_.empty()) return std::nullopt;
    const auto chance = [&](std::uint64_t of_hundred) { return is_bad && random() % 100 < of_hundred; };
    const auto at = chance(20) ? random() % all_.size() : 0;
    auto one = all_[at];
    if (!chance(5)) all_.erase(all_.begin() + static_cast<long>(at)); // else it comes again
    if (chance(5)) return std::nullopt;
    return one;
  }

private:
  std::vector<Message> all_;
};

} // namespace dlrun::ps_shard::test
