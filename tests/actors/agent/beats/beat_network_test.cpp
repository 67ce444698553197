// Two ends of a pair, each with a thread that is stopped now and then, over a network that loses,
// delays and cuts: seeded schedules in made-up time.
#include "actors/agent/beats/own_time.hpp"
#include "actors/agent/beats/peer_watch.hpp"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::duration;
using protocol::time_point;

struct conditions {
  double loss = 0;
  duration delay_max = 1ms;
  duration pause = 0ms;      ///< of an end
  duration pause_every = 2s; ///< mean
  duration wake_late_max{};  ///< of the threads, whenever they wake
};

/// One end: what beat_exchange does, without a socket.
struct network_end {
  network_end(std::uint64_t own, std::uint64_t peer)
      : watch{{}, own, peer} {}

  peer_watch watch;
  own_time own{50ms};
  time_point next_beat{};
  time_point wakes{};
  time_point stopped_until{};
  std::multimap<time_point, beat> inbox; ///< by arrival
  bool is_cut = false;                   ///< nothing reaches it
  std::optional<time_point> silent{};    ///< since when it says so
};

class beat_network {
public:
  beat_network(unsigned seed, conditions with)
      : random_{seed}
      , with_{with} {
    for (auto* end : {&root, &host}) end->next_beat = end->wakes = now;
  }

  void pass(duration time) {
    for (const auto end = now + time; now < end; now += 1ms) {
      for (auto* one : {&root, &host}) {
        const bool may_stop = with_.pause > 0ms && now >= one->stopped_until + 500ms;
        if (may_stop && chance(1.0 / static_cast<double>(with_.pause_every / 1ms)))
          one->stopped_until = now + with_.pause;
        auto& other = one == &root ? host : root;
        if (now >= one->wakes && now >= one->stopped_until) turn(*one, other);
      }
    }
  }
  void cut(network_end& end) {
    end.is_cut = true;
    end.inbox.clear();
  }

  time_point now{1h};
  network_end root{5, 7};
  network_end host{7, 5};

private:
  bool chance(double probability) { return std::bernoulli_distribution{probability}(random_); }
  duration up_to(duration most) {
    return duration{std::uniform_int_distribution<std::int64_t>{0, most.count()}(random_)};
  }

  void turn(network_end& one, network_end& other) {
    const auto due = std::min(one.next_beat, one.watch.silent_at(now));
    if (const auto paused = one.own.woke(due, now); paused > 0ms) one.watch.on_own_pause(paused);
    const auto come = one.inbox.upper_bound(now);
    for (auto at = one.inbox.begin(); at != come; ++at) one.watch.on_beat(at->second, now);
    one.inbox.erase(one.inbox.begin(), come);
    if (now >= one.next_beat) {
      one.next_beat = std::max(one.next_beat + 50ms, now + 25ms);
      const auto sent = one.watch.next(0ms, now);
      if (!other.is_cut && !chance(with_.loss)) other.inbox.emplace(now + up_to(with_.delay_max), sent);
    }
    if (one.watch.look(now) == sight::silent)
      one.silent = one.silent.value_or(now);
    else
      one.silent.reset();
    const auto next = std::min(one.next_beat, one.watch.silent_at(now));
    const auto mail = one.inbox.empty() ? time_point::max() : one.inbox.begin()->first;
    one.wakes = std::max(now + 1ms, std::min(next, mail)) + up_to(with_.wake_late_max);
  }

  std::mt19937 random_;
  conditions with_;
};

/// 5 % loss each way, threads that wake up to 30 ms late, and half a second without a processor
/// every other second.
constexpr conditions bad{.loss = 0.05, .delay_max = 10ms, .pause = 500ms, .wake_late_max = 30ms};

TEST(beat_network, nobody_is_called_silent_who_is_stopped_for_half_a_second_behind_a_bad_line) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    beat_network network{seed, bad};
    for (int i = 0; i < 600; ++i) {
      network.pass(50ms);
      ASSERT_FALSE(network.root.silent) << "seed " << seed;
      ASSERT_FALSE(network.host.silent) << "seed " << seed;
    }
  }
}

TEST(beat_network, a_cut_in_either_direction_is_seen_within_a_second_at_both_ends) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    beat_network network{seed, {.loss = 0.05, .delay_max = 10ms, .wake_late_max = 30ms}};
    network.pass(10s + std::chrono::milliseconds(seed));
    ASSERT_EQ(network.root.watch.look(network.now), sight::there) << "seed " << seed;
    const auto begin = network.now;
    if (seed % 3 != 0) network.cut(network.root);
    if (seed % 3 != 1) network.cut(network.host);
    network.pass(1100ms);
    ASSERT_TRUE(network.root.silent.has_value()) << "seed " << seed;
    EXPECT_LE(*network.root.silent - begin, 1s) << "seed " << seed;
    ASSERT_TRUE(network.host.silent.has_value()) << "seed " << seed;
    EXPECT_LE(*network.host.silent - begin, 1s) << "seed " << seed;
  }
}

} // namespace
} // namespace dlrun::agent
