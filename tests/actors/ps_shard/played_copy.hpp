/// One copy of a PS shard's store in the property test of copies: the stream to its keeper, and the
/// line between them.
#pragma once

#include "tests/actors/ps_shard/played_copies.hpp"

#include <fmt/format.h>
#include <functional>
#include <string>

namespace dlrun::ps_shard::test {

/// It has said that it has what the floor leaves, and more.
inline bool is_past_floor(const std::optional<protocol::copy_standing>& said, const played_store& own) {
  const version_id floor{own.floor};
  return said && said->timeline == own.timeline() && floor > said->floor && floor <= said->end &&
         std::ranges::binary_search(said->snapshots, floor);
}

/// As store_copy: what the PS shard does about one copy, and its keeper.
class played_copy {
public:
  explicit played_copy(protocol::planted_bug bug)
      : bug_(bug)
      , stream_(bug) {}

  // ---- the PS shard

  /// Another start of it.
  void restart_shard() {
    stream_ = copy_stream{bug_};
    record_.reset();
    snapshot_.reset();
  }
  bool is_stuck(protocol::time_point now) const { return stream_.is_stuck(now); }
  bool runs() const { return stream_.runs(); }
  void begin_stream(const played_store& own, incarnation shard, protocol::time_point now) {
    record_.reset();
    snapshot_.reset();
    stream_.begin(now);
    floor_sent_ = {};
    send({copy_kind::hello, {}}, own, shard);
  }
  /// @param said by the copy, last
  /// @returns what was wrong; "" if nothing was
  std::string pump(const played_store& own, incarnation shard,
                   const std::optional<protocol::copy_standing>& said, protocol::time_point now) {
    std::string wrong;
    while (stream_.runs() && stream_.has_room()) {
      if (!record_)
        if (const auto item = stream_.next(own.described())) {
          if (item->kind == copy_kind::floor) floor_sent_ = item->version;
          const bool is_late = item->kind == copy_kind::record && !snapshot_ && floor_sent_.value < own.floor;
          if (is_late && is_past_floor(said, own))
            wrong = "the copy gets a record before it hears of the floor";
          if (!begin_piece(*item, own, shard)) {
            stream_.fail(now);
            return wrong;
          }
          continue;
        }
      const bool is_its_turn = !record_ || stream_.is_turn_of(snapshot_share);
      auto& next = snapshot_ && is_its_turn ? snapshot_ : record_;
      if (!next) return wrong;
      send(next->item, own, shard, next->made_on, next->sent++);
      if (next->sent < parts_of(next->item)) continue;
      if (next->item.kind == copy_kind::snapshot) stream_.on_snapshot_sent();
      next.reset();
    }
    return wrong;
  }

  // ---- the line

  /// @param arriving of those that are on the way so many arrive in this turn
  void deliver(const std::function<std::size_t(std::size_t)>& arriving, std::mt19937_64& random, bool is_bad,
               const std::function<void(const protocol::copy_standing&)>& hear) {
    for (auto count = arriving(parts_.waiting()); count > 0; --count)
      if (const auto part = parts_.next(random, is_bad))
        if (const auto answer = keeper.take(*part)) answers_.push(*answer);
    for (auto count = arriving(answers_.waiting()); count > 0; --count)
      if (const auto answer = answers_.next(random, is_bad)) hear(*answer);
  }
  bool accepts(const protocol::copy_standing& said, incarnation shard, protocol::time_point now) {
    return said.incarnation == keeper.self && said.shard == shard && stream_.on_standing(said, now);
  }

  // ---- the keeper

  /// Another start of it.
  void lose_keeper(bool with_disk) {
    believed = {}; // before anybody is told
    ++keeper.self.value;
    if (with_disk) keeper.store = {};
    keeper.shard = {};
    keeper.stream = keeper.taken = keeper.record_had = keeper.snapshot_had = 0;
  }
  void end_stream() { stream_.end(); }
  bool is_believed() const { return believed == keeper.self; }

  played_keeper keeper;
  incarnation believed{}; ///< the start of the keeper that counts, as the agent has heard

private:
  static constexpr std::uint64_t snapshot_share = 4;
  struct piece {
    copy_item item;
    timeline_id made_on;
    std::uint64_t sent = 0;
  };

  /// @returns false for what has been dropped meanwhile.
  bool begin_piece(const copy_item& item, const played_store& own, incarnation shard) {
    if (item.kind != copy_kind::record && item.kind != copy_kind::snapshot) {
      send(item, own, shard);
      return true;
    }
    const auto& all = item.kind == copy_kind::record ? own.log : own.snapshots;
    const auto found = all.find(item.version.value);
    if (found == all.end()) return false;
    (item.kind == copy_kind::record ? record_ : snapshot_) = piece{item, found->second};
    return true;
  }
  void send(const copy_item& item, const played_store& own, incarnation shard, timeline_id made_on = {},
            std::uint64_t index = 0) {
    played_part part{keeper.self, shard, stream_.stream(), stream_.take_number(), item, index, made_on, {}};
    for (const auto& one : own.history)
      if (one.timeline <= item.timeline) part.history.push_back(one);
    parts_.push(part);
  }

  protocol::planted_bug bug_;
  copy_stream stream_;
  std::optional<piece> record_, snapshot_;
  version_id floor_sent_{}; ///< in this stream
  played_line<played_part> parts_;
  played_line<protocol::copy_standing> answers_;
};

} // namespace dlrun::ps_shard::test
