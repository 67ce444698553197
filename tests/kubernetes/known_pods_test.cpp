#include "kubernetes/known_pods.hpp"

#include "tests/kubernetes/pod_plan_fixture.hpp"

#include <gmock/gmock.h>

namespace dlrun::kubernetes {
namespace {

using test::pod;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> uids_of(const known_pods& pods, std::uint32_t slot) {
  std::vector<std::string> all;
  for (const auto* one : pods.of(slot)) all.push_back(one->uid);
  return all;
}

TEST(known_pods, are_found_by_uid_and_by_slot) {
  known_pods pods;
  for (const auto& one : {pod(1, 2), pod(0, 1), pod(1, 1)}) pods.put(one);
  EXPECT_THAT(uids_of(pods, 0), ElementsAre("u0-1"));
  EXPECT_THAT(uids_of(pods, 1), ElementsAre("u1-1", "u1-2"));
  EXPECT_THAT(uids_of(pods, 2), IsEmpty());
  ASSERT_NE(pods.find("u1-2"), nullptr);
  EXPECT_EQ(*pods.find("u1-2"), pod(1, 2));
  EXPECT_EQ(pods.find("u2-1"), nullptr);
}

TEST(known_pods, are_as_they_were_told_last) {
  known_pods pods;
  pods.put(pod(0, 1, pod_phase::pending));
  pods.put(pod(0, 1));
  ASSERT_THAT(uids_of(pods, 0), ElementsAre("u0-1"));
  EXPECT_TRUE(pods.of(0).front()->runs);
  auto moved = pod(0, 1);
  moved.slot = 3;
  pods.put(moved);
  EXPECT_THAT(uids_of(pods, 0), IsEmpty());
  EXPECT_THAT(uids_of(pods, 3), ElementsAre("u0-1"));
  EXPECT_EQ(pods.all().size(), 1U);
}

TEST(known_pods, are_gone_from_their_slot_too) {
  known_pods pods;
  pods.put(pod(0, 1));
  pods.put(pod(0, 2));
  pods.erase("u0-1");
  pods.erase("u9-9");
  EXPECT_THAT(uids_of(pods, 0), ElementsAre("u0-2"));
  EXPECT_FALSE(pods.contains("u0-1"));
  const auto moved = std::move(pods);
  EXPECT_EQ(moved.of(0).front(), moved.find("u0-2"));
}

} // namespace
} // namespace dlrun::kubernetes
