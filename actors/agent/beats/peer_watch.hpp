/// Is the other end there? Judged by beats that it answers (R29).
///
///     here   beat 7 -->            beat 8 -->            beat 9 -->        nothing more is answered
///     there        heard 7, beat 31 -->  heard 8, beat 32 -->   X
///     proven until:      [sent 7]              [sent 8]  .. silence grows from there ..  [silent]
#pragma once

#include "actors/agent/beats/beat_wire.hpp"
#include "actors/agent/beats/sighting.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <array>

namespace dlrun::agent {

/// The bound of silence is the longest that there was of late and that ended, plus a stop of 500
/// ms, which is to be borne, plus two beats that are lost beside it. On a line that loses nothing
/// an answered beat is up to 100 ms old, a period each way: that makes the lowest bound. The
/// highest leaves 100 ms of a second.
struct watch_rules {
  protocol::duration period = std::chrono::milliseconds(50);
  protocol::duration silence_min = std::chrono::milliseconds(700);
  protocol::duration silence_max = std::chrono::milliseconds(900);
  protocol::duration borne = std::chrono::milliseconds(600); ///< beyond the longest silence
  /// Its beats are answered, but its actor has had no turn for so long.
  protocol::duration hang_max = std::chrono::seconds(5);
  protocol::planted_bug bug = protocol::planted_bug::none; ///< for the simulator
};

/// Pure: one peer, as this process sees it. Beats are authentic when they come here.
class peer_watch {
public:
  /// @param own_boot random number of this start, @param peer_boot of that which is watched
  /// @param last_sequence as beat_options has it
  peer_watch(watch_rules rules, std::uint64_t own_boot, std::uint64_t peer_boot,
             std::uint64_t last_sequence = 0)
      : rules_{rules}
      , own_boot_{own_boot}
      , peer_boot_{peer_boot}
      , sequence_{last_sequence} {}

  /// The beat to send now, one each period.
  beat next(protocol::duration turn_age, protocol::time_point now);
  /// @returns false for one that counts for nothing: of another start, or not newer than the last.
  /// Where one came from that counts, there the peer is now (R39).
  bool on_beat(const beat& heard, protocol::time_point now);
  /// Whether one that counted for nothing is of that start, and older than the last: where it came
  /// from, if not from where the peer is, there may be an earlier root, which is to be answered.
  bool is_late(const beat& heard) const;
  /// The peer was called before its start was known, which is this one: what it says now may answer
  /// those calls.
  void meet(std::uint64_t peer_boot) { peer_boot_ = peer_boot; }
  /// This process did not run for so long, until now: it could neither ask nor hear.
  void on_own_pause(protocol::duration paused);

  /// Once `moved_on`, always that.
  sight look(protocol::time_point now) const;
  /// When look() becomes `silent` if nothing is answered until then; time_point::max() unless it is
  /// `there` or `hangs`.
  protocol::time_point silent_at(protocol::time_point now) const;
  /// Since the newest of its answered beats was sent; 0 while nothing is proven.
  protocol::duration silence(protocol::time_point now) const;
  /// What silence() may not reach.
  protocol::duration silence_bound() const;

private:
  /// Beats of ours that an answer may still name: the last 3.2 s.
  static constexpr std::size_t kept_beats = 64;

  protocol::time_point& sent_at(std::uint64_t sequence) { return sent_[sequence % kept_beats]; }
  void prove(std::uint64_t sequence, protocol::time_point now);

  watch_rules rules_;
  std::uint64_t own_boot_;
  std::uint64_t peer_boot_;
  std::uint64_t sequence_; ///< of the beat sent last
  std::array<protocol::time_point, kept_beats> sent_{};
  std::uint64_t heard_ = 0;             ///< newest beat of the peer
  bool has_moved_on_ = false;           ///< it has answered beats beyond ours
  std::uint64_t proven_ = 0;            ///< newest beat of ours that it has answered; 0: none
  protocol::time_point proven_until_{}; ///< when that was sent
  protocol::duration longest_{};        ///< silence that ended; forgotten over about a minute
  protocol::duration turn_age_{};       ///< of its actor
};

} // namespace dlrun::agent
