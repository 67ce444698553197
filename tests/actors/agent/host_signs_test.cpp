// Is the agent of a host lost?
#include "actors/agent/host_signs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

/// It has come at `came`.
class host_signs_test : public testing::Test {
protected:
  std::string why_lost(protocol::duration after, bool has_ended = false) const {
    return signs.why_lost(rules, has_ended, came + after);
  }

  const host_rules rules{
      .link_patience = 10s, .beats_patience = 2s, .only_link_patience = 1s, .silence_max = 3s};
  const protocol::time_point came{1h};
  host_signs signs{came};
};

TEST_F(host_signs_test, beats_decide_where_they_pass) {
  signs.see({sight::there, 0ms});
  EXPECT_EQ(why_lost(1h), "") << "though it has said nothing since";
  signs.see({sight::silent, 750ms});
  EXPECT_EQ(why_lost(1h), "it has answered no beat for 0.75 s");
  EXPECT_TRUE(signs.is_silent());
  signs.see({sight::hangs, 0ms});
  EXPECT_EQ(why_lost(1h), "its agent answers beats, but does nothing else");
}

TEST_F(host_signs_test, without_beats_its_words_decide) {
  EXPECT_EQ(why_lost(2900ms), "");
  EXPECT_EQ(why_lost(3s), "it has given no sign of life for 3.0 s");
  signs.on_heard(came + 1s);
  EXPECT_EQ(why_lost(3900ms), "");
}

TEST_F(host_signs_test, a_lost_link_has_more_time_to_come_back_where_beats_pass) {
  signs.on_link_lost(came + 1s);
  signs.on_link_lost(came + 2s); // no news
  EXPECT_EQ(why_lost(1900ms), "");
  EXPECT_EQ(why_lost(2s), "the link to it is lost");
  signs.see({sight::there, 0ms});
  EXPECT_EQ(why_lost(10900ms), "");
  EXPECT_EQ(why_lost(11s), "the link to it is lost");
  signs.on_link(came + 11s);
  EXPECT_FALSE(signs.is_link_lost());
  EXPECT_EQ(why_lost(1h), "");
}

TEST_F(host_signs_test, the_end_of_its_command_is_a_loss_when_the_link_is_lost_too) {
  signs.see({sight::there, 0ms});
  EXPECT_EQ(why_lost(1s, true), "") << "as behind ssh";
  signs.on_link_lost(came + 1s);
  EXPECT_EQ(why_lost(1s, true), "its agent has ended");
}

TEST_F(host_signs_test, that_no_beats_pass_is_told_once_and_that_they_do_once) {
  EXPECT_FALSE(signs.take_blocked(rules, came + 1900ms));
  EXPECT_FALSE(signs.take_passing());
  EXPECT_TRUE(signs.take_blocked(rules, came + 2s));
  EXPECT_FALSE(signs.take_blocked(rules, came + 3s));
  signs.see({sight::there, 0ms});
  EXPECT_TRUE(signs.take_passing());
  EXPECT_FALSE(signs.take_passing());
  EXPECT_FALSE(signs.take_blocked(rules, came + 4s)) << "they do";
}

TEST_F(host_signs_test, while_this_process_was_stopped_nothing_is_proven) {
  signs.on_link_lost(came);
  signs.excuse(5s);
  EXPECT_EQ(why_lost(5900ms), "");
  EXPECT_FALSE(signs.take_blocked(rules, came + 6900ms));
  EXPECT_EQ(why_lost(6s), "the link to it is lost");
  signs.on_link(came + 6s);
  signs.excuse(1min);
  EXPECT_EQ(why_lost(1min + 8900ms), "");
  EXPECT_THAT(why_lost(1min + 9s), testing::HasSubstr("no sign of life"));
}

TEST_F(host_signs_test, a_loss_that_is_forgotten_may_come_again) {
  signs.on_link_lost(came);
  signs.forget_loss();
  EXPECT_FALSE(signs.is_link_lost());
  signs.on_link_lost(came + 1s);
  EXPECT_TRUE(signs.is_link_lost());
}

} // namespace
} // namespace dlrun::agent
