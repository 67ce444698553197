#include "kubernetes/pod_admission.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr time_point began{1h};

pod_record pod(const char* uid, std::uint32_t incarnation, const char* address) {
  return {.name = fmt::format("job-hosts-2-{}", incarnation),
          .uid = uid,
          .owner = "owner",
          .address = address,
          .slot = 2,
          .incarnation = incarnation};
}

class pod_admission_test : public testing::Test {
protected:
  void list(std::vector<pod_record> pods, time_point at = began) {
    admission.on_news(pod_listing{.pods = std::move(pods), .began = at});
  }
  std::string why_not(const char* uid, const char* address) const {
    return admission.why_not({.slot = 2, .uid = uid, .address = address});
  }

  pod_admission admission;
};

TEST_F(pod_admission_test, lets_in_the_pod_that_the_server_tells_of) {
  list({pod("u1", 1, "10.0.0.1")});
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, lets_in_one_whose_address_is_not_told_yet) {
  list({pod("u1", 1, "")});
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, lets_in_one_that_does_not_say_which_it_is_by_its_address) {
  list({pod("u1", 1, "10.0.0.1")});
  EXPECT_EQ(why_not("", "10.0.0.1"), "");
  EXPECT_THAT(why_not("", "10.0.0.9"), HasSubstr("no pod of it with the address 10.0.0.9"));
}

TEST_F(pod_admission_test, refuses_who_has_another_uid_or_address_or_is_of_another_slot) {
  list({pod("u1", 1, "10.0.0.1")});
  EXPECT_THAT(why_not("u2", "10.0.0.1"), AllOf(HasSubstr("uid u2"), HasSubstr("address 10.0.0.1")));
  EXPECT_NE(why_not("u1", "10.0.0.9"), "");
  EXPECT_NE(admission.why_not({.slot = 1, .uid = "u1", .address = "10.0.0.1"}), "");
}

TEST_F(pod_admission_test, refuses_a_pod_that_is_deleted_or_over) {
  auto going = pod("u1", 1, "10.0.0.1");
  going.is_going = true;
  auto over = pod("u2", 2, "10.0.0.2");
  over.phase = pod_phase::failed;
  list({going, over});
  EXPECT_THAT(why_not("u1", "10.0.0.1"), HasSubstr("pod job-hosts-2-1 is to end"));
  EXPECT_THAT(why_not("u2", "10.0.0.2"), HasSubstr("pod job-hosts-2-2 is to end"));
}

TEST_F(pod_admission_test, refuses_a_pod_in_whose_place_another_one_was_made_until_that_is_gone) {
  list({pod("u1", 1, "10.0.0.1"), pod("u2", 2, "")});
  EXPECT_THAT(why_not("u1", "10.0.0.1"), HasSubstr("job-hosts-2-2 was made in its place"));
  EXPECT_EQ(why_not("u2", "10.0.0.2"), "");
  admission.on_news(pod_gone{"u2"});
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, does_not_mind_the_pods_of_an_earlier_job_of_that_name) {
  auto other = pod("u9", 9, "10.0.0.9");
  other.owner = "before";
  list({pod("u1", 1, "10.0.0.1"), other});
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, lets_in_what_was_made_before_the_watch_tells_of_it) {
  list({});
  admission.on_created(pod("u1", 1, ""), began + 5s);
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
  list({}, began + 4s); // it was asked for before
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
  list({}, began + 6s);
  EXPECT_NE(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, knows_what_the_watch_told_of_a_pod_before_its_creation_was_answered) {
  list({});
  auto going = pod("u1", 1, "10.0.0.1");
  going.is_going = true;
  admission.on_news(going);
  admission.on_created(pod("u1", 1, ""), began);
  EXPECT_NE(why_not("u1", "10.0.0.1"), "");
}

TEST_F(pod_admission_test, waits_for_what_the_server_has_but_not_for_one_that_does_not_answer) {
  EXPECT_NE(why_not("u1", "10.0.0.1"), "");
  admission.on_silence();
  EXPECT_EQ(why_not("u1", "10.0.0.1"), "");
  list({});
  EXPECT_NE(why_not("u1", "10.0.0.1"), "") << "now it has said";
}

} // namespace
} // namespace dlrun::kubernetes
