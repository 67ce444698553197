/// Which versions of a PS shard are on every store that counts, where there may be several copies
/// (rules R21 to R23).
#pragma once

#include "actors/ps_shard/copy_book.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// What a PS shard waits for.
enum class copied_part : std::uint8_t { log, snapshot };

/// Pure: a copy_book for each copy, one behind the other. What the first releases is what the
/// second hears of its store, and so on; the core hears what the last one releases. So what is
/// committed is on the own store and on every copy that counts, and each copy begins, counts and
/// ends without regard to the others. Without copies the core hears all at once.
///
///   own store ──> book 0 ──> book 1 ──> ... ──> core
class copy_chain {
public:
  /// @param copies that are wanted. kept: not `off`
  copy_chain(std::size_t copies, protocol::durability kept,
             protocol::planted_bug bug = protocol::planted_bug::none);

  // As of copy_book.
  void restart(const protocol::history& history, version_id version);
  void begin_with(std::size_t copy, dlrun::incarnation keeper) { books_.at(copy).begin_with(keeper); }
  released_versions on_logged(version_id version);
  released_versions on_snapshot(timeline_id of, version_id version);
  released_versions on_standing(std::size_t copy, const protocol::copy_standing& standing,
                                const own_store& mine, protocol::time_point now);
  /// What the own store has dropped since, the copy need not have: its last word may be enough now.
  released_versions look_again(std::size_t copy, const own_store& mine, protocol::time_point now);
  released_versions on_keeper(std::size_t copy, dlrun::incarnation runs);
  released_versions let_go(std::size_t copy);

  std::size_t size() const { return books_.size(); }
  const copy_book& of(std::size_t copy) const { return books_.at(copy); }
  /// That the own store is on.
  timeline_id timeline() const { return timeline_; }
  /// The copy that alone keeps the next one from the core: the last that does, since what one holds
  /// back those behind it have not heard of.
  std::optional<std::size_t> awaited_for(copied_part part) const;

private:
  released_versions pass(std::size_t from, released_versions news);

  protocol::planted_bug bug_;
  std::vector<copy_book> books_;
  timeline_id timeline_ = protocol::newest_timeline(protocol::first_history());
};

} // namespace dlrun::ps_shard
