// dlrun drain, asked of a root that the test plays.
#include "tests/cli/played_root.hpp"

#include <thread>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

class drain_verb_test : public played_root_test {
protected:
  int drain(std::vector<std::string> words) {
    words.insert(words.begin(), "drain");
    return ask(add_drain, std::move(words));
  }
};

TEST_F(drain_verb_test, what_can_be_no_name_of_a_host_is_refused_before_the_root_is_asked) {
  start_root({"{}"});
  for (const auto* name : {"\xff", "", "be ta", "beta\n", "-", "b\x1b[2J"}) {
    EXPECT_EQ(drain({"--", name}), 2) << name;
    EXPECT_THAT(complaint, HasSubstr("cannot be a host's: letters, digits"));
    EXPECT_THAT(complaint, testing::Not(HasSubstr("\x1b")));
  }
  EXPECT_EQ(drain({"\xff"}), 2);
  EXPECT_THAT(complaint, HasSubstr("\"\\xff\""));
  EXPECT_EQ(asked, 0);
}

TEST_F(drain_verb_test, what_the_root_says_is_told_and_at_the_end_whether_there_are_copies) {
  start_root({R"({"status":"running","hosts":[{"name":"beta","state":"drained","without_copies":true}]})"},
             R"({"host":"beta","text":"host beta is being drained; no copies while beta is drained"})");
  EXPECT_EQ(drain({"beta", "--wait"}), 0);
  EXPECT_EQ(said, "host beta is being drained; no copies while beta is drained\n"
                  "host beta is drained: it may be switched off; no copies while beta is drained\n");
}

TEST_F(drain_verb_test, of_two_who_ask_at_once_and_wait_both_wait) {
  start_root({R"({"status":"running","hosts":[{"name":"beta","state":"draining","waits_for":"worker 1"}]})",
              R"({"status":"running","hosts":[{"name":"beta","state":"drained"}]})"},
             R"({"error":"host beta is draining already","exit_code":2})");
  EXPECT_EQ(drain({"beta", "--wait"}), 0);
  EXPECT_EQ(said, "host beta is drained: it may be switched off\n");
  EXPECT_EQ(complaint, "");
}

TEST_F(drain_verb_test, who_does_not_wait_is_told_that_it_is_drained_already) {
  start_root({R"({"status":"running","hosts":[{"name":"beta","state":"draining"}]})"},
             R"({"error":"host beta is draining already","exit_code":2})");
  EXPECT_EQ(drain({"beta"}), 2);
  EXPECT_THAT(complaint, HasSubstr("is draining already"));
  EXPECT_EQ(looks, 0);
}

TEST_F(drain_verb_test, a_wait_says_so_when_the_root_is_gone_between_two_looks) {
  start_root({R"({"status":"running","hosts":[{"name":"beta","state":"draining","waits_for":"worker 1"}]})"});
  std::thread ending{[this] { end_root_after(1); }};
  EXPECT_EQ(drain({"beta", "--wait"}), 1);
  ending.join();
  EXPECT_THAT(complaint, HasSubstr("dlrun: the job ended meanwhile\n"));
}

} // namespace
} // namespace dlrun::cli
