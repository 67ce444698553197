#include "actors/agent/host_roster.hpp"

#include "tests/actors/only.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

class host_roster_test : public testing::Test {
protected:
  host_roster_test() { attempt = test::the_only<run_command>(roster.start(now)).attempt; }

  std::string join(std::uint64_t boot) {
    events.clear();
    return roster.on_joined("beta", boot, now, events);
  }
  /// Time passes in steps of a tick; the host is heard meanwhile if `boot` is given.
  roster_events pass(protocol::duration time, std::optional<std::uint64_t> boot = {}) {
    roster_events all;
    for (; time > 0ms; time -= 100ms) {
      now += 100ms;
      if (boot) roster.on_heard("beta", *boot, now);
      for (auto& event : roster.tick(now)) all.push_back(std::move(event));
    }
    return all;
  }

  /// Beats of boot 7 tell this.
  roster_events see(sight what, protocol::duration silence = {}) {
    return roster.on_sighting("beta", 7, {what, silence}, now);
  }

  protocol::time_point now{1h};
  host_roster roster{{}, {"beta"}};
  std::uint64_t attempt = 0;
  roster_events events;
};

TEST_F(host_roster_test, lets_a_host_in_that_is_listed) {
  EXPECT_EQ(roster.missing().size(), 1U);
  EXPECT_EQ(join(7), "");
  EXPECT_EQ(roster.boot_of("beta"), 7U);
  EXPECT_THAT(roster.missing(), IsEmpty());
  EXPECT_THAT(roster.on_joined("delta", 8, now, events), HasSubstr("not one of the job's"));
}

TEST_F(host_roster_test, keeps_a_host_that_is_heard) {
  join(7);
  pass(2s, 7);
  EXPECT_THAT(pass(10s, 7), IsEmpty());
}

// R39: another root has it, and what it runs.
TEST_F(host_roster_test, does_not_give_up_a_host_that_follows_a_later_root) {
  join(7);
  see(sight::there);
  EXPECT_THAT(see(sight::moved_on), IsEmpty());
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(pass(1min), IsEmpty());
}

TEST_F(host_roster_test, gives_up_a_host_that_answers_no_beat_and_says_since_when) {
  join(7);
  EXPECT_THAT(see(sight::there), IsEmpty());
  const auto lost = see(sight::silent, 730ms);
  EXPECT_EQ(test::the_only<host_lost>(lost).boot, 7U);
  EXPECT_THAT(test::the_only<host_lost>(lost).why, HasSubstr("no beat for 0.73 s"));
  EXPECT_EQ(test::the_only<kill_command>(lost).attempt, attempt);
  EXPECT_THAT(join(7), HasSubstr("given up"));
}

TEST_F(host_roster_test, keeps_a_host_that_answers_beats_whatever_else_it_says) {
  join(7);
  see(sight::there);
  EXPECT_THAT(pass(1min), IsEmpty());
}

TEST_F(host_roster_test, gives_up_a_host_that_answers_beats_and_does_nothing_else) {
  join(7);
  see(sight::there);
  EXPECT_THAT(test::the_only<host_lost>(see(sight::hangs)).why, HasSubstr("does nothing else"));
}

TEST_F(host_roster_test, a_lost_link_is_no_death_of_a_host_that_answers_beats) {
  join(7);
  see(sight::there);
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(pass(9900ms), IsEmpty());
  EXPECT_EQ(join(7), "");
  EXPECT_THAT(pass(1min), IsEmpty());
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(test::the_only<host_lost>(pass(10s)).why, HasSubstr("link")); // it cannot be for ever
}

TEST_F(host_roster_test, says_that_no_beats_pass_and_that_they_do_after_all) {
  join(7);
  EXPECT_THAT(pass(1900ms, 7), IsEmpty());
  EXPECT_FALSE(test::the_only<host_beats>(pass(100ms, 7)).pass);
  EXPECT_THAT(pass(1min, 7), IsEmpty()); // once, and the host is kept
  EXPECT_TRUE(test::the_only<host_beats>(see(sight::there)).pass);
  test::the_only<host_lost>(see(sight::silent));
}

TEST_F(host_roster_test, believes_beats_of_the_start_that_is_there_only) {
  join(7);
  EXPECT_THAT(roster.on_sighting("beta", 6, {sight::silent, 1s}, now), IsEmpty());
  EXPECT_THAT(roster.on_sighting("delta", 7, {sight::silent, 1s}, now), IsEmpty());
  see(sight::there);
  EXPECT_EQ(join(8), "");
  EXPECT_FALSE(test::the_only<host_beats>(pass(2s, 8)).pass); // what 7 answered tells nothing of 8
}

TEST_F(host_roster_test, gives_up_a_host_that_is_silent_where_no_beats_pass) {
  join(7);
  EXPECT_FALSE(test::the_only<host_beats>(pass(2900ms)).pass);
  const auto lost = pass(100ms);
  EXPECT_EQ(test::the_only<host_lost>(lost).boot, 7U);
  EXPECT_THAT(test::the_only<host_lost>(lost).why, HasSubstr("no sign of life for 3.0 s"));
  EXPECT_EQ(test::the_only<kill_command>(lost).attempt, attempt);
}

TEST_F(host_roster_test, blames_nobody_for_a_time_in_which_it_was_stopped_itself) {
  join(7);
  EXPECT_THAT(pass(1s), IsEmpty());
  now += 1min;
  EXPECT_THAT(roster.tick(now), IsEmpty());
  EXPECT_FALSE(test::the_only<host_beats>(pass(1900ms)).pass); // only now has it had two seconds
  test::the_only<host_lost>(pass(100ms));
}

TEST_F(host_roster_test, waits_for_a_lost_link_to_come_back) {
  join(7);
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(pass(900ms, 7), IsEmpty());
  EXPECT_EQ(join(7), "");
  EXPECT_FALSE(test::the_only<host_beats>(pass(5s, 7)).pass);
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(test::the_only<host_lost>(pass(1s, 7)).why, HasSubstr("link"));
}

TEST_F(host_roster_test, gives_up_at_once_when_the_link_and_the_command_are_gone) {
  join(7);
  roster.on_link_lost("beta", 7, now);
  const auto lost = roster.on_command_ended("beta", attempt, "was killed by signal 9 (KILL)", now);
  EXPECT_THAT(test::the_only<host_lost>(lost).why, HasSubstr("signal 9"));
}

TEST_F(host_roster_test, does_so_in_the_other_order_too) {
  join(7);
  EXPECT_THAT(roster.on_command_ended("beta", attempt, "exited", now), IsEmpty()); // behind ssh it lives on
  see(sight::there);
  EXPECT_THAT(pass(5s, 7), IsEmpty());
  roster.on_link_lost("beta", 7, now);
  test::the_only<host_lost>(roster.tick(now));
}

TEST_F(host_roster_test, lets_a_boot_that_was_given_up_in_no_more) {
  join(7);
  roster.on_link_lost("beta", 7, now);
  pass(1s);
  EXPECT_THAT(join(7), HasSubstr("given up"));
  EXPECT_EQ(join(8), "");
  EXPECT_EQ(roster.boot_of("beta"), 8U);
}

TEST_F(host_roster_test, gives_up_a_boot_that_another_one_replaces_and_keeps_the_newer_command) {
  join(7);
  EXPECT_EQ(join(8), "");
  EXPECT_EQ(test::the_only<host_lost>(events).boot, 7U);
  EXPECT_EQ(events.size(), 1U);
  EXPECT_EQ(roster.boot_of("beta"), 8U);
  EXPECT_THAT(pass(1900ms, 8), IsEmpty());
}

TEST_F(host_roster_test, starts_the_agent_of_a_lost_host_again_and_less_and_less_often) {
  join(7);
  roster.on_link_lost("beta", 7, now);
  pass(1s);
  EXPECT_TRUE(roster.is_expected("beta"));
  attempt = test::the_only<run_command>(pass(500ms)).attempt;
  EXPECT_THAT(
      test::the_only<host_not_started>(roster.on_command_ended("beta", attempt, "exited with code 255", now))
          .why,
      HasSubstr("255"));
  EXPECT_THAT(pass(900ms), IsEmpty());
  test::the_only<run_command>(pass(100ms));
}

TEST_F(host_roster_test, gives_up_a_start_that_says_nothing) {
  EXPECT_THAT(pass(59900ms), IsEmpty());
  const auto failed = pass(100ms);
  EXPECT_THAT(test::the_only<host_not_started>(failed).why, HasSubstr("no word"));
  test::the_only<kill_command>(failed);
}

TEST_F(host_roster_test, says_nothing_of_hosts_that_leave_when_it_is_closed) {
  join(7);
  EXPECT_THAT(roster.close(), IsEmpty());
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(see(sight::silent), IsEmpty());
  EXPECT_THAT(roster.on_command_ended("beta", attempt, "exited with code 0", now + 1ms), IsEmpty());
  EXPECT_THAT(pass(10s), IsEmpty());
}

TEST_F(host_roster_test, a_host_stays_after_the_end_until_its_link_is_lost) {
  join(7);
  roster.close();
  EXPECT_EQ(roster.staying(), 1U);
  roster.on_link_lost("beta", 7, now);
  EXPECT_EQ(roster.staying(), 0U);
}

TEST_F(host_roster_test, a_host_whose_link_was_lost_before_the_end_stays_until_it_came_back_to_hear_of_it) {
  join(7);
  see(sight::there);
  roster.on_link_lost("beta", 7, now);
  roster.close();
  EXPECT_EQ(roster.staying(), 1U);
  EXPECT_EQ(join(7), "");
  EXPECT_EQ(roster.staying(), 1U);
  roster.on_link_lost("beta", 7, now);
  EXPECT_EQ(roster.staying(), 0U);
}

TEST_F(host_roster_test, a_host_that_answers_no_beats_after_the_end_has_gone) {
  join(7);
  roster.close();
  see(sight::silent);
  EXPECT_EQ(roster.staying(), 0U);
}

TEST_F(host_roster_test, starts_nobody_any_more_when_it_is_closed) {
  const auto closing = roster.close();
  EXPECT_EQ(test::the_only<end_command>(closing).host, "beta") << "it may have made its folder";
  EXPECT_THAT(pass(2min), IsEmpty());
  EXPECT_THAT(join(9), HasSubstr("over"));
}

/// R37: an earlier root had kept that it is drained.
TEST(drained_roster, starts_no_agent_and_waits_for_none_before_the_drain_is_undone) {
  const protocol::time_point now{1h};
  host_roster roster{{}, {"beta"}};
  EXPECT_THAT(roster.set_drained("beta", true, now), IsEmpty());
  EXPECT_THAT(roster.start(now), IsEmpty());
  EXPECT_THAT(roster.missing(), IsEmpty());
  EXPECT_THAT(roster.on_their_way(), IsEmpty());
  EXPECT_FALSE(roster.is_expected("beta"));
  EXPECT_EQ(roster.drained_away(), 1U);
  EXPECT_THAT(roster.tick(now + 60s), IsEmpty());
  EXPECT_EQ(test::the_only<run_command>(roster.set_drained("beta", false, now + 60s)).host, "beta");
  EXPECT_EQ(roster.missing().size(), 1U);
}

TEST(drained_roster, lets_an_agent_in_that_is_still_there) {
  const protocol::time_point now{1h};
  host_roster roster{{}, {"beta"}};
  roster.set_drained("beta", true, now);
  roster.start(now);
  roster_events events;
  EXPECT_EQ(roster.on_joined("beta", 7, now, events), "");
  EXPECT_EQ(roster.drained_away(), 0U);
  const auto lost = roster.on_sighting("beta", 7, {sight::silent, 800ms}, now + 1s);
  EXPECT_TRUE(test::the_only<host_lost>(lost).left) << "its end is no loss";
}

class reattaching_roster_test : public testing::Test {
protected:
  static host_rules rules() {
    host_rules made;
    made.reattach_patience = 2s;
    return made;
  }
  reattaching_roster_test() { EXPECT_THAT(roster.start(now), IsEmpty()); }

  protocol::time_point now{1h};
  host_roster roster{rules(), {"beta"}};
  roster_events events;
};

TEST_F(reattaching_roster_test, starts_the_agent_of_a_host_that_does_not_come_by_itself) {
  EXPECT_TRUE(roster.is_expected("beta"));
  EXPECT_THAT(roster.tick(now + 1900ms), IsEmpty());
  EXPECT_EQ(test::the_only<run_command>(roster.tick(now + 2s)).host, "beta");
}

TEST_F(reattaching_roster_test, starts_nobody_where_an_agent_comes_and_bears_the_loss_of_its_link) {
  EXPECT_EQ(roster.on_joined("beta", 7, now, events), "");
  roster.on_sighting("beta", 7, {sight::there, 0ms}, now);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(roster.tick(now += 100ms), IsEmpty());
  roster.on_link_lost("beta", 7, now);
  for (int i = 0; i < 99; ++i) EXPECT_THAT(roster.tick(now += 100ms), IsEmpty()) << i;
  EXPECT_EQ(test::the_only<host_lost>(roster.tick(now += 100ms)).why, "the link to it is lost");
}

// ---- hosts that come by themselves

TEST_F(host_roster_test, waits_for_a_host_that_enrols_and_lets_what_it_came_by_end) {
  join(7);
  const auto tried = roster.admit("delta", now);
  ASSERT_TRUE(tried);
  EXPECT_THAT(roster.missing(), IsEmpty()); // nobody starts it here
  EXPECT_EQ(roster.enrolling(), 1U);
  EXPECT_EQ(roster.on_joined("delta", 8, now, events), "");
  EXPECT_EQ(test::the_only<kill_command>(events).attempt, *tried);
  EXPECT_EQ(roster.there(), 2U);
  EXPECT_EQ(roster.enrolling(), 0U);
  EXPECT_THAT(roster.on_command_ended("delta", *tried, "has ended", now), IsEmpty());
}

TEST_F(host_roster_test, says_whether_a_name_may_be_tried_again) {
  EXPECT_EQ(roster.admit("beta", now).error().code, error_code::bad_usage); // is the root's to start
  ASSERT_TRUE(roster.admit("delta", now));
  EXPECT_EQ(roster.admit("delta", now).error().code, error_code::in_use); // until that one is lost
  roster.close();
  EXPECT_EQ(roster.admit("epsilon", now).error().code, error_code::in_use); // the job may go on
}

TEST_F(host_roster_test, admits_each_name_once_and_none_of_the_list) {
  EXPECT_THAT(roster.admit("beta", now).error().message, HasSubstr("one of the list of hosts"));
  ASSERT_TRUE(roster.admit("delta", now));
  EXPECT_THAT(roster.admit("delta", now).error().message, HasSubstr("is joining already"));
  roster.on_joined("delta", 8, now, events);
  EXPECT_THAT(roster.admit("delta", now).error().message, HasSubstr("is there"));
}

TEST_F(host_roster_test, a_host_that_enrolled_and_went_is_waited_for_no_more_until_it_enrols_again) {
  join(7);
  const auto tried = roster.admit("delta", now).value();
  const auto failed = test::the_only<host_not_started>(
      roster.on_command_ended("delta", tried, "has ended: its data is other data", now));
  EXPECT_TRUE(failed.enrolled);
  EXPECT_THAT(failed.why, HasSubstr("other data"));
  EXPECT_FALSE(roster.is_expected("delta"));
  EXPECT_THAT(pass(1min, 7), testing::Not(testing::Contains(testing::VariantWith<run_command>(testing::_))));
  EXPECT_THAT(roster.on_joined("delta", 8, now, events), HasSubstr("has to join again"));
  const auto again = roster.admit("delta", now).value();
  EXPECT_NE(again, tried);
  EXPECT_THAT(roster.on_command_ended("delta", tried, "has ended", now), IsEmpty()); // that of before
  EXPECT_EQ(roster.on_joined("delta", 8, now, events), "");
}

TEST_F(host_roster_test, nobody_starts_a_host_again_that_enrolled_and_is_lost) {
  roster = host_roster{{}, {}};
  ASSERT_TRUE(roster.admit("beta", now));
  join(7);
  EXPECT_THAT(see(sight::there), IsEmpty());
  EXPECT_EQ(test::the_only<host_lost>(see(sight::silent, 730ms)).boot, 7U);
  EXPECT_THAT(pass(1min), IsEmpty());
  EXPECT_TRUE(roster.is_expected("beta")) << "it may join again";
  ASSERT_TRUE(roster.admit("beta", now));
  EXPECT_THAT(join(7), HasSubstr("given up")); // the one of before
  EXPECT_EQ(join(8), "");
}

TEST_F(host_roster_test, a_lost_link_is_no_end_of_a_host_that_enrolled_and_answers_beats) {
  roster = host_roster{{}, {}};
  ASSERT_TRUE(roster.admit("beta", now));
  join(7);
  see(sight::there);
  roster.on_link_lost("beta", 7, now);
  EXPECT_THAT(pass(9900ms), IsEmpty());
  EXPECT_EQ(join(7), "");
}

TEST_F(host_roster_test, a_host_that_enrolled_and_gives_no_word_is_waited_for_as_long_as_any) {
  join(7);
  ASSERT_TRUE(roster.admit("delta", now));
  const auto events_of = [](const roster_events& all) {
    return std::ranges::count_if(
        all, [](const auto& one) { return std::holds_alternative<host_not_started>(one); });
  };
  EXPECT_EQ(events_of(pass(59s, 7)), 0);
  EXPECT_EQ(events_of(pass(2s, 7)), 1);
  EXPECT_EQ(roster.enrolling(), 0U);
}

TEST_F(host_roster_test, lets_a_host_go_that_is_to_leave_and_that_is_no_loss) {
  join(7);
  const auto gone = roster.let_go("beta", now);
  EXPECT_TRUE(test::the_only<host_lost>(gone).left);
  EXPECT_THAT(roster.let_go("beta", now), IsEmpty());
  EXPECT_THAT(join(7), HasSubstr("given up"));
}

TEST(host_states, are_found_by_name) {
  host_states states;
  for (const auto* host : {"beta", "delta", "gamma"}) states.add(host, host_state::away);
  states.add("zeta", host_state::there);
  EXPECT_TRUE(states.contains("beta"));
  EXPECT_TRUE(states.contains("gamma"));
  EXPECT_EQ(states.at("zeta"), host_state::there);
  for (const auto* other : {"", "alpha", "epsilon", "zeta1"}) EXPECT_FALSE(states.contains(other));
  EXPECT_FALSE(host_states{}.contains("beta"));
}

} // namespace
} // namespace dlrun::agent
