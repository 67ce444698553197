#include "actors/agent/gpu_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class gpu_choice_test : public testing::Test {
protected:
  /// So often, a second apart. @returns what the last of them led to
  std::optional<avoided_gpu> fail(gpu_choice& choice, std::uint32_t gpu, int times) {
    std::optional<avoided_gpu> last;
    for (int i = 0; i < times; ++i) last = choice.on_failure(gpu, "an illegal address", now += 1s);
    return last;
  }

  gpu_choice two{"alpha", {4, 7}};
  protocol::time_point now{1h};
};

TEST_F(gpu_choice_test, workers_take_turns_in_the_order_of_the_list) {
  for (const std::uint32_t worker : {0U, 1U, 2U, 3U}) EXPECT_EQ(two.take(worker), worker % 2 == 0 ? 4U : 7U);
}

TEST_F(gpu_choice_test, no_gpu_is_idle_whichever_workers_of_the_job_the_host_has) {
  EXPECT_EQ(two.take(0), 4U);
  EXPECT_EQ(two.take(2), 7U) << "worker 1 is on another host";
  gpu_choice three{"alpha", {0, 1, 2}};
  EXPECT_EQ(three.take(4), 1U);
  EXPECT_EQ(three.take(7), 2U) << "the next one in the list";
  EXPECT_EQ(three.take(10), 0U);
  EXPECT_EQ(three.take(13), 1U) << "as many on all";
}

TEST_F(gpu_choice_test, a_start_takes_the_place_of_the_one_before) {
  EXPECT_EQ(two.take(0), 4U);
  EXPECT_EQ(two.take(1), 7U);
  two.give_back(7);
  EXPECT_EQ(two.take(1), 7U);
  two.give_back(4);
  EXPECT_EQ(two.take(5), 4U) << "it has none";
}

TEST_F(gpu_choice_test, without_gpus_there_is_none_to_take) {
  gpu_choice none{"alpha", {}};
  EXPECT_EQ(none.take(0), std::nullopt);
  none.give_back(0);
  EXPECT_EQ(none.on_failure(0, "", now), std::nullopt);
}

TEST_F(gpu_choice_test, one_that_fails_three_times_in_a_minute_is_avoided) {
  EXPECT_EQ(fail(two, 4, 2), std::nullopt);
  EXPECT_EQ(two.take(0), 4U);
  two.give_back(4);
  const auto avoided = fail(two, 4, 1);
  ASSERT_TRUE(avoided);
  EXPECT_EQ(avoided->gpu, 4U);
  EXPECT_EQ(avoided->host, "alpha");
  EXPECT_THAT(avoided->reason, AllOf(HasSubstr("3 times within 60 s"), HasSubstr("an illegal address"),
                                     HasSubstr("workers get GPU 7")));
  EXPECT_EQ(two.take(0), 7U);
  EXPECT_EQ(two.take(1), 7U);
  now += 1h;
  EXPECT_EQ(two.take(2), 7U) << "it stays so";
}

TEST_F(gpu_choice_test, what_is_avoided_is_told_once) {
  EXPECT_TRUE(fail(two, 4, 3));
  EXPECT_EQ(fail(two, 4, 5), std::nullopt) << "of others that were there still";
}

TEST_F(gpu_choice_test, failures_that_are_further_apart_are_borne) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(two.on_failure(4, "", now), std::nullopt) << i;
    now += 31s;
  }
  EXPECT_EQ(two.take(0), 4U);
}

TEST_F(gpu_choice_test, three_within_exactly_a_minute_count_and_those_of_other_gpus_do_not) {
  two.on_failure(4, "", now);
  two.on_failure(7, "", now + 10s);
  two.on_failure(7, "", now + 20s);
  EXPECT_EQ(two.on_failure(4, "", now + 30s), std::nullopt);
  EXPECT_TRUE(two.on_failure(4, "", now + 60s));
}

TEST_F(gpu_choice_test, the_last_gpu_is_never_avoided) {
  gpu_choice one{"alpha", {0}};
  EXPECT_EQ(fail(one, 0, 10), std::nullopt);
  EXPECT_EQ(one.take(3), 0U);
  EXPECT_TRUE(fail(two, 7, 3));
  EXPECT_EQ(fail(two, 4, 10), std::nullopt);
  EXPECT_EQ(two.take(1), 4U);
}

TEST_F(gpu_choice_test, workers_of_an_avoided_gpu_go_where_the_fewest_are) {
  gpu_choice three{"alpha", {0, 1, 2}};
  EXPECT_TRUE(fail(three, 0, 3));
  EXPECT_EQ(three.take(1), 1U);
  EXPECT_EQ(three.take(4), 2U);
  EXPECT_EQ(three.take(0), 1U) << "as many on both: the next of the list";
  EXPECT_EQ(three.take(3), 2U);
  for (int i = 0; i < 2; ++i) three.give_back(2);
  EXPECT_EQ(three.take(9), 2U);
}

TEST_F(gpu_choice_test, a_gpu_that_is_not_among_them_changes_nothing) {
  two.give_back(5);
  two.give_back(4);
  EXPECT_EQ(fail(two, 5, 10), std::nullopt);
  EXPECT_EQ(two.take(0), 4U);
}

} // namespace
} // namespace dlrun::agent
