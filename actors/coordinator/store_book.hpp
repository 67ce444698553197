/// What the store of each PS shard has acknowledged, and whether the one that it comes back with
/// holds that (R24).
#pragma once

#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::coordinator {

/// A start of a PS shard came back with less than its store had acknowledged.
struct store_loss {
  ps_shard_id shard;
  dlrun::incarnation start;
  protocol::store_standing before, now; ///< may be the same store
  version_id acknowledged, found;       ///< the newest of each
  std::string reason;                   ///< for people

  bool operator==(const store_loss&) const = default;
};

/// The store of a PS shard, as its starts have told.
struct known_store {
  protocol::store_standing store;
  dlrun::incarnation opener; ///< the newest start that has joined with it
  timeline_id timeline;
  protocol::version_set restorable;
  std::vector<store_loss> losses{}; ///< oldest first, losses_max at most

  bool operator==(const known_store&) const = default;
};

/// Pure: what is journaled of it is a lower bound of what was acknowledged, so that no store is
/// called short that is not.
class store_book {
public:
  using stores = std::map<ps_shard_id, known_store>;
  static constexpr std::size_t losses_max = 64; ///< of a PS shard, the newest: for the report

  /// `journaled`: what was to_journal() in starts of the coordinator before this one.
  explicit store_book(stores journaled = {}, protocol::planted_bug bug = protocol::planted_bug::none)
      : known_(journaled)
      , journaled_(std::move(journaled))
      , bug_(bug) {}

  struct verdict {
    /// It is to get another identity: under the one it has it had acknowledged more.
    bool is_short = false;
    std::optional<store_loss> news; ///< that it has less: once a start
  };
  /// A start of a PS shard has joined, the newest. Of one that was told again the verdict is the
  /// same, but no news.
  verdict on_joined(const protocol::join& join);
  void on_status(const protocol::shard_status& status);

  /// Those that are to be written now: other stores at once, the same ones each second, as they
  /// grow; with no time all. Nobody waits for it.
  std::vector<std::pair<ps_shard_id, known_store>> to_journal(std::optional<protocol::time_point> now);

  const stores& known() const { return known_; }
  /// Of all PS shards, oldest first of each.
  std::vector<store_loss> losses() const;

private:
  verdict judge(const protocol::join& join, known_store& known) const;

  stores known_;
  stores journaled_;
  protocol::planted_bug bug_;
  protocol::time_point written_{};
};

/// The newest version that it can restore.
version_id newest_of(const known_store& known);
/// For people.
std::string describe(const store_loss& loss);

} // namespace dlrun::coordinator
