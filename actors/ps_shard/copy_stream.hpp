/// What a PS shard sends to the keeper of its copy next, and how much at a time (rules R23, R26,
/// R27).
#pragma once

#include "actors/protocol/time.hpp"
#include "actors/ps_shard/copy_book.hpp"

#include <optional>

namespace dlrun::ps_shard {

/// A piece of the store that is to be sent whole.
struct copy_item {
  protocol::copy_kind kind = protocol::copy_kind::record;
  version_id version{};
  std::optional<version_id> kept{}; ///< floor
  timeline_id timeline{};           ///< that the copy is on when it gets this; rewind: goes to

  bool operator==(const copy_item&) const = default;
};

/// Pure: the copy goes through the timelines one by one, as the store did, and gets on each what is
/// left of it. What both a timeline and the next one have is sent on whichever the copy is on: it
/// is the same, and a store takes nothing of a timeline below its own. A snapshot is sent beside
/// records, which do not wait for it, and a floor before either, once the copy is past it. A stream
/// begins with a question, goes on from the answer to
/// it, and sends what comes next as if all before had been taken. When that turns out otherwise,
/// another one begins.
class copy_stream {
public:
  /// Parts that may be on the way at a time, those without bytes too.
  static constexpr std::uint64_t parts_on_the_way_max = 16;
  /// A stream that has failed is begun anew after so long.
  static constexpr auto patience = std::chrono::seconds(1);
  /// And one without an answer, in which time a part gets over any link that one can train over;
  /// after time_to_keep() more of what the keeper has in hand.
  static constexpr auto silence_max = std::chrono::seconds(2);

  explicit copy_stream(protocol::planted_bug bug = protocol::planted_bug::none)
      : bug_(bug) {}

  /// Another stream. Its first part, which says nothing else, is to be sent now.
  void begin(protocol::time_point now);
  /// There is nobody to send to.
  void end() { number_ = 0; }
  bool runs() const { return number_ > 0; }
  /// @returns false for what is not of this stream, contradicts itself, or was overtaken by what
  ///   was said later.
  bool on_standing(const protocol::copy_standing& standing, protocol::time_point now);
  /// What is to be sent cannot be read.
  void fail(protocol::time_point now) { failed_ = now; }
  /// It has got nowhere for too long, or the keeper takes nothing more of it.
  bool is_stuck(protocol::time_point now) const;

  /// What is to be sent next; nothing: all is on the way, or waits for the snapshot that is being
  /// sent. A record or an order counts as taken with that, a snapshot with on_snapshot_sent().
  std::optional<copy_item> next(const own_store& mine);
  void on_snapshot_sent();
  bool has_room() const { return runs() && number_ - taken_ < parts_on_the_way_max; }
  /// Whether the next part is one in so many.
  bool is_turn_of(std::uint64_t share) const { return number_ % share == 0; }
  /// Of the part that is sent now.
  std::uint64_t take_number() { return number_++; }
  std::uint64_t stream() const { return stream_; }
  /// Parts with lower numbers have been taken.
  std::uint64_t taken() const { return taken_; }

private:
  protocol::planted_bug bug_;
  std::uint64_t stream_ = 0;
  std::uint64_t number_ = 0; ///< of the next part; 0: no stream
  std::uint64_t taken_ = 0;
  std::optional<protocol::time_point> failed_{};
  protocol::time_point heard_{};
  protocol::duration to_keep_{};                  ///< what was in the keeper's hand when it answered
  std::optional<copy_item> snapshot_{};           ///< that is being sent
  std::optional<protocol::copy_standing> then_{}; ///< how the copy stands when all but that is taken
};

} // namespace dlrun::ps_shard
