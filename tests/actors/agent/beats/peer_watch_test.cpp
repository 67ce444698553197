#include "actors/agent/beats/peer_watch.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

/// The root and a host, a millisecond apart; each sends a beat in each period.
class peer_watch_test : public testing::Test {
protected:
  void pass(protocol::duration time) {
    for (const auto end = now + time; now < end; now += 50ms) {
      const auto to_host = root.next(0ms, now);
      const auto to_root = host.next(host_turn_age, now);
      if (!cut_to_host) host.on_beat(to_host, now + 1ms);
      if (!cut_to_root) root.on_beat(to_root, now + 1ms);
    }
  }
  /// @returns after how much more time the root sees `wanted`; nothing within 2 s.
  std::optional<protocol::duration> time_until(sight wanted, const peer_watch& who) {
    const auto begin = now;
    for (; now < begin + 2s; pass(50ms))
      if (who.look(now) == wanted) return now - begin;
    return std::nullopt;
  }

  static constexpr std::uint64_t root_boot = 5;
  static constexpr std::uint64_t host_boot = 7;
  protocol::time_point now{1h};
  peer_watch root{{}, root_boot, host_boot};
  peer_watch host{{}, host_boot, root_boot};
  protocol::duration host_turn_age{};
  bool cut_to_host = false;
  bool cut_to_root = false;
};

TEST_F(peer_watch_test, nothing_is_proven_before_the_first_answer) {
  EXPECT_EQ(root.look(now), sight::unproven);
  cut_to_root = true;
  pass(10s);
  EXPECT_EQ(root.look(now), sight::unproven);
  EXPECT_EQ(root.silent_at(now), protocol::time_point::max());
}

TEST_F(peer_watch_test, who_answers_is_there) {
  pass(10s);
  EXPECT_EQ(root.look(now), sight::there);
  EXPECT_EQ(host.look(now), sight::there);
  EXPECT_LE(root.silence(now), 100ms);
  EXPECT_LE(root.silence_bound(), 710ms);
}

TEST_F(peer_watch_test, who_is_cut_off_is_silent_within_a_second_at_both_ends) {
  pass(10s);
  cut_to_root = cut_to_host = true;
  const auto at_root = time_until(sight::silent, root);
  ASSERT_TRUE(at_root.has_value());
  EXPECT_GE(*at_root, 550ms);
  EXPECT_LE(*at_root, 750ms);
  EXPECT_EQ(time_until(sight::silent, host), 0ms);
}

TEST_F(peer_watch_test, who_is_heard_but_hears_nothing_is_silent) {
  pass(10s);
  cut_to_host = true;
  EXPECT_LE(time_until(sight::silent, root).value(), 750ms);
  EXPECT_EQ(host.look(now), sight::silent);
}

TEST_F(peer_watch_test, who_hears_but_is_not_heard_is_silent) {
  pass(10s);
  cut_to_root = true;
  EXPECT_LE(time_until(sight::silent, root).value(), 750ms);
  EXPECT_LE(time_until(sight::silent, host).value(), 100ms);
}

TEST_F(peer_watch_test, who_answers_again_is_there_again) {
  pass(1s);
  cut_to_root = true;
  pass(5s);
  cut_to_root = false;
  EXPECT_LE(time_until(sight::there, root).value(), 150ms);
}

TEST_F(peer_watch_test, a_stop_of_half_a_second_is_borne_and_makes_the_bound_higher) {
  pass(1s);
  cut_to_root = cut_to_host = true;
  pass(500ms);
  EXPECT_EQ(root.look(now), sight::there);
  cut_to_root = cut_to_host = false;
  pass(200ms);
  EXPECT_EQ(root.silence_bound(), 900ms);
  pass(3min);
  EXPECT_LE(root.silence_bound(), 710ms); // forgotten
}

TEST_F(peer_watch_test, the_bound_stays_under_900_ms_whatever_was_seen) {
  pass(1s);
  cut_to_root = true;
  pass(1min);
  cut_to_root = false;
  pass(200ms);
  EXPECT_EQ(root.silence_bound(), 900ms);
  cut_to_root = true;
  EXPECT_LE(time_until(sight::silent, root).value(), 900ms);
}

TEST_F(peer_watch_test, a_time_in_which_it_was_stopped_itself_is_no_silence) {
  pass(1s);
  const auto before = root.silence(now);
  now += 1h;
  root.on_own_pause(1h);
  EXPECT_EQ(root.silence(now), before);
  EXPECT_EQ(root.look(now), sight::there);
  cut_to_host = true;
  EXPECT_LE(time_until(sight::silent, root).value(), 750ms);
}

TEST_F(peer_watch_test, who_answers_a_later_root_has_moved_on_for_good) {
  pass(1s);
  auto said = host.next(0ms, now);
  const auto known = said.heard_sequence;
  said.heard_sequence += 1'000'000;
  said.heard_boot = root_boot + 1; // the beats of another run
  EXPECT_TRUE(root.on_beat(said, now));
  EXPECT_EQ(root.look(now), sight::there);
  said.heard_boot = root_boot;
  ++said.sequence;
  EXPECT_TRUE(root.on_beat(said, now));
  EXPECT_EQ(root.look(now), sight::moved_on);
  said.heard_sequence = known;
  ++said.sequence;
  EXPECT_TRUE(root.on_beat(said, now));
  now += 1h;
  EXPECT_EQ(root.look(now), sight::moved_on);
  EXPECT_EQ(root.silent_at(now), protocol::time_point::max());
}

TEST_F(peer_watch_test, beats_of_other_starts_and_old_ones_count_for_nothing) {
  pass(1s);
  auto again = host.next(0ms, now);
  EXPECT_TRUE(root.on_beat(again, now));
  EXPECT_FALSE(root.on_beat(again, now)); // replayed
  --again.sequence;
  EXPECT_FALSE(root.on_beat(again, now)); // late
  again.sequence += 100;
  again.boot = host_boot + 1;
  EXPECT_FALSE(root.on_beat(again, now));
}

TEST_F(peer_watch_test, an_answer_to_another_start_of_ours_or_to_nothing_that_we_sent_proves_nothing) {
  root.next(0ms, now);
  beat heard{.boot = host_boot, .sequence = 1, .heard_boot = root_boot + 1, .heard_sequence = 1};
  EXPECT_TRUE(root.on_beat(heard, now));
  EXPECT_EQ(root.look(now), sight::unproven);
  heard = {.boot = host_boot, .sequence = 2, .heard_boot = root_boot, .heard_sequence = 2};
  EXPECT_TRUE(root.on_beat(heard, now)); // as of a root that began with older data than others before it
  EXPECT_EQ(root.look(now), sight::unproven);
  heard = {.boot = host_boot, .sequence = 3, .heard_boot = root_boot, .heard_sequence = 1};
  EXPECT_TRUE(root.on_beat(heard, now));
  EXPECT_EQ(root.look(now), sight::there);
}

TEST_F(peer_watch_test, an_answer_to_a_beat_of_long_ago_proves_nothing) {
  pass(1s);
  cut_to_root = true;
  pass(10s);
  ASSERT_EQ(root.look(now), sight::silent);
  // The 30th of 220 beats: newer than the last that was answered, and old.
  EXPECT_TRUE(root.on_beat(
      {.boot = host_boot, .sequence = 1000, .heard_boot = root_boot, .heard_sequence = 30}, now));
  EXPECT_EQ(root.look(now), sight::silent);
}

TEST_F(peer_watch_test, who_answers_but_whose_actor_has_had_no_turn_hangs) {
  host_turn_age = 4900ms;
  pass(1s);
  EXPECT_EQ(root.look(now), sight::there);
  host_turn_age = 5s;
  pass(100ms);
  EXPECT_EQ(root.look(now), sight::hangs);
  cut_to_root = true;
  EXPECT_TRUE(time_until(sight::silent, root).has_value());
}

TEST_F(peer_watch_test, tells_when_silence_would_become_a_verdict) {
  pass(1s);
  const auto due = root.silent_at(now);
  EXPECT_EQ(root.look(due - 1us), sight::there);
  EXPECT_EQ(root.look(due), sight::silent);
}

TEST_F(peer_watch_test, who_goes_on_for_another_start_is_believed_if_its_beats_follow_on) {
  pass(10s);
  root = peer_watch{{}, root_boot, host_boot};
  pass(2s);
  EXPECT_EQ(host.look(now), sight::silent) << "numbers that it has heard before";
  root = peer_watch{{}, root_boot, host_boot, std::uint64_t{1} << 40};
  pass(2s);
  EXPECT_EQ(host.look(now), sight::there);
  EXPECT_EQ(root.look(now), sight::there);
}

} // namespace
} // namespace dlrun::agent
