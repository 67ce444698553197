#include "actors/agent/beats/peer_watch.hpp"

#include <algorithm>

namespace dlrun::agent {

using protocol::duration;
using protocol::time_point;

namespace {

/// What is kept of the longest silence from one answer to the next, in 1024ths: with 20 answers a
/// second it is down to a third after 51 s.
constexpr int kept_share = 1023;

} // namespace

beat peer_watch::next(duration turn_age, time_point now) {
  sent_at(++sequence_) = now;
  const auto age = std::chrono::floor<std::chrono::milliseconds>(turn_age).count();
  return {.boot = own_boot_,
          .sequence = sequence_,
          .heard_boot = peer_boot_,
          .heard_sequence = heard_,
          .turn_age_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(age, 0, UINT32_MAX))};
}

bool peer_watch::on_beat(const beat& heard, time_point now) {
  if (heard.boot != peer_boot_) return false;
  if (heard.sequence <= heard_) return is_planted(rules_.bug, protocol::planted_bug::follow_any);
  heard_ = heard.sequence;
  turn_age_ = std::chrono::milliseconds(heard.turn_age_ms);
  if (is_planted(rules_.bug, protocol::planted_bug::one_way_beat) && sequence_ > 0) prove(sequence_, now);
  const auto answered = heard.heard_sequence;
  if (heard.heard_boot != own_boot_) return true;
  const bool is_of_the_last = answered <= sequence_ && sequence_ - answered < kept_beats;
  const bool is_misread = is_planted(rules_.bug, protocol::planted_bug::misread_answer);
  // Of the roots of a run, which share a boot, only a later one has sent what this one has not.
  if (answered > sequence_ && (proven_ > 0 || is_misread))
    has_moved_on_ = true;
  else if (answered > proven_ && is_of_the_last)
    prove(answered, now);
  return true;
}

bool peer_watch::is_late(const beat& heard) const {
  return heard.boot == peer_boot_ && heard.sequence < heard_ &&
         !is_planted(rules_.bug, protocol::planted_bug::follow_quietly);
}

void peer_watch::prove(std::uint64_t sequence, time_point now) {
  longest_ = std::max(silence(now), longest_ * kept_share / 1024);
  proven_ = sequence;
  proven_until_ = sent_at(sequence);
}

void peer_watch::on_own_pause(duration paused) {
  if (is_planted(rules_.bug, protocol::planted_bug::deaf_leader)) return;
  for (auto& time : sent_) time += paused;
  proven_until_ += paused;
}

duration peer_watch::silence(time_point now) const {
  return proven_ == 0 ? duration{0} : now - proven_until_;
}

duration peer_watch::silence_bound() const {
  return std::clamp(longest_ + rules_.borne, rules_.silence_min, rules_.silence_max);
}

sight peer_watch::look(time_point now) const {
  if (has_moved_on_) return sight::moved_on;
  if (proven_ == 0) return sight::unproven;
  if (silence(now) >= silence_bound()) return sight::silent;
  return turn_age_ >= rules_.hang_max ? sight::hangs : sight::there;
}

time_point peer_watch::silent_at(time_point now) const {
  const auto seen = look(now);
  const bool is_heard = seen == sight::there || seen == sight::hangs;
  return is_heard ? proven_until_ + silence_bound() : time_point::max();
}

} // namespace dlrun::agent
