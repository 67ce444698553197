// Which starts of workers a PS shard believes.
#include "actors/ps_shard/worker_starts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

protocol::directory naming(std::uint64_t incarnation, std::uint64_t token) {
  protocol::directory made;
  made.entries.push_back({protocol::worker_role({2}), {incarnation}, true, {}, token});
  return made;
}

TEST(worker_starts, who_does_not_know_the_token_does_not_speak_for_itself) {
  worker_starts starts;
  EXPECT_TRUE(starts.speaks_for_itself({2}, {{5}, 1})) << "nobody is named yet";
  starts.learn(naming(5, 77));
  EXPECT_FALSE(starts.speaks_for_itself({2}, {{5}, 1}));
  EXPECT_TRUE(starts.speaks_for_itself({2}, {{5}, 77}));
  EXPECT_TRUE(starts.speaks_for_itself({2}, {{6}, 1})) << "a newer start, which will be in the directory";
}

TEST(worker_starts, the_newest_of_what_the_directory_and_workers_say_counts) {
  worker_starts starts;
  EXPECT_FALSE(starts.refuse({2}, {3}));
  EXPECT_FALSE(starts.knows_newer({2}, {3}));
  EXPECT_TRUE(starts.knows_newer({2}, {2}));
  starts.learn(naming(5, 77));
  EXPECT_EQ(starts.refuse({2}, {3}), incarnation{5});
  EXPECT_FALSE(starts.refuse({2}, {9}));
  starts.learn(naming(5, 77));
  EXPECT_TRUE(starts.knows_newer({2}, {5})) << "an older directory takes nothing back";
}

TEST(worker_starts, a_first_contribution_is_news_once_a_start) {
  worker_starts starts;
  protocol::push push;
  push.worker = {2};
  push.self = {{4}, 0};
  push.step = {7};
  EXPECT_TRUE(starts.note_contribution(push));
  push.step = {8};
  EXPECT_FALSE(starts.note_contribution(push));
  EXPECT_EQ(starts.contributions().at(0).step, step_id{7});
  push.self.incarnation = {5};
  EXPECT_TRUE(starts.note_contribution(push));
  EXPECT_EQ(starts.contributions().at(0).step, step_id{8});
}

} // namespace
} // namespace dlrun::ps_shard
