// dlrun scale --wait, asked of a root that the test plays.
#include "tests/cli/played_root.hpp"

#include <fmt/format.h>
#include <thread>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

std::string status(int wanted, int present, int leaving, const char* state = "running") {
  return fmt::format(R"({{"status":"{}","workers":{{"wanted":{},"present":{},"leaving":{}}}}})", state,
                     wanted, present, leaving);
}

class scale_verb_test : public played_root_test {
protected:
  int scale_to_two() { return ask(add_scale, {"scale", "--workers", "2", "--wait"}); }
};

TEST_F(scale_verb_test, waits_until_all_are_there_and_none_is_leaving) {
  start_root({status(2, 1, 0), status(2, 3, 1), status(2, 2, 1), status(2, 2, 0)});
  EXPECT_EQ(scale_to_two(), 0);
  EXPECT_EQ(complaint, "");
  EXPECT_THAT(said, HasSubstr("2 workers are there\n"));
  EXPECT_EQ(looks, 4);
}

TEST_F(scale_verb_test, a_wait_says_so_when_another_number_is_asked_for_meanwhile) {
  start_root({status(2, 1, 0), status(3, 3, 0)});
  EXPECT_EQ(scale_to_two(), 1);
  EXPECT_THAT(complaint,
              HasSubstr("dlrun: 3 workers are wanted by now: somebody asked for another number\n"));
}

TEST_F(scale_verb_test, a_wait_goes_on_while_the_coordinator_starts_anew) {
  start_root({R"({"status":"running"})", R"({"status":"running","workers":{}})", status(2, 2, 0)});
  EXPECT_EQ(scale_to_two(), 0);
  EXPECT_EQ(looks, 3);
}

TEST_F(scale_verb_test, a_wait_ends_with_the_job) {
  start_root({status(2, 1, 0), status(2, 1, 0, "completed")});
  EXPECT_EQ(scale_to_two(), 1);
  EXPECT_THAT(complaint, HasSubstr("dlrun: the job ended meanwhile\n"));
}

TEST_F(scale_verb_test, a_wait_says_so_when_the_root_is_gone_between_two_looks) {
  start_root({status(2, 1, 0)});
  std::thread ending{[this] { end_root_after(1); }};
  EXPECT_EQ(scale_to_two(), 1);
  ending.join();
  EXPECT_THAT(complaint, HasSubstr("dlrun: the job ended meanwhile\n"));
}

} // namespace
} // namespace dlrun::cli
