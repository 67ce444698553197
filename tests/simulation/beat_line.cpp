#include "tests/simulation/beat_line.hpp"

#include "tests/simulation/world.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::simulation {

using protocol::duration;
using protocol::time_point;

beat_line::beat_line(world& where, process& of, std::uint64_t boot,
                     std::function<void(protocol::role_name, const host_beat&)> send,
                     std::function<time_point()> now, std::uint64_t last_sequence)
    : world_(where)
    , process_(of)
    , boot_(boot)
    , last_sequence_(last_sequence)
    , send_(std::move(send))
    , now_(std::move(now))
    , rules_(simulated_watch_rules(where.bug()))
    , own_time_(rules_.period) {}

void beat_line::begin() {
  due_ = next_beat_ = turn_ = now_();
  serve();
}

void beat_line::watch(const std::string& name, protocol::role_name to, std::uint64_t boot, told tell) {
  const auto known = peers_.find(name);
  if (known != peers_.end() && known->second.boot == boot) return;
  peers_.insert_or_assign(
      name, peer{to, boot, {rules_, boot_, boot, last_sequence_}, agent::sight::unproven, std::move(tell)});
}

agent::sight beat_line::sees(const std::string& name) const {
  const auto known = peers_.find(name);
  return known == peers_.end() ? agent::sight::unproven : known->second.seen;
}

void beat_line::receive(const host_beat& datagram) {
  inbox_.push_back(datagram.what);
  serve();
}

void beat_line::wake_at(time_point due) {
  due_ = due;
  const auto delay = std::max(due - now_(), duration(1));
  world_.after(delay, &process_, [this, alarm = ++alarm_] {
    if (alarm == alarm_) serve();
  });
}

void beat_line::serve() {
  const auto at = now_();
  if (const auto paused = own_time_.woke(due_, at); paused > duration{0})
    for (auto& [name, one] : peers_) one.watch.on_own_pause(paused);
  due_ = at; // its time is had until here
  read_all(at);
  send_all(at);
  look_at_all(at);
  if (!process_.alive) return;
  auto due = next_beat_;
  for (const auto& [name, one] : peers_) due = std::min(due, one.watch.silent_at(at));
  wake_at(due);
}

void beat_line::read_all(time_point at) {
  for (const auto& heard : std::exchange(inbox_, {}))
    for (auto& [name, one] : peers_) one.watch.on_beat(heard, at);
}

void beat_line::send_all(time_point at) {
  if (at < next_beat_) return;
  next_beat_ = std::max(next_beat_ + rules_.period, at + rules_.period / 2);
  for (auto& [name, one] : peers_)
    send_(one.to, host_beat{one.watch.next(own_time_.turn_age(turn_, at), at)});
}

/// What is told may change who is watched.
void beat_line::look_at_all(time_point at) {
  std::vector<std::pair<told, agent::sighting>> changes;
  for (auto& [name, one] : peers_) {
    const auto seen = one.watch.look(at);
    if (seen != std::exchange(one.seen, seen)) changes.push_back({one.tell, {seen, one.watch.silence(at)}});
  }
  for (const auto& [tell, what] : changes)
    if (process_.alive) tell(what);
}

} // namespace dlrun::simulation
