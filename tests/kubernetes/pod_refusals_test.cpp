#include "kubernetes/pod_refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

const api_refusal no_room{refusal_kind::no_room, "exceeded quota: 1"};
const api_refusal no_right{refusal_kind::no_right, "lacks the right to create pods", "create pods"};
const api_refusal not_allowed{refusal_kind::no_right, "violates PodSecurity"};
const api_refusal going{refusal_kind::namespace_ends, "namespace team-a is being terminated"};

class pod_refusals_test : public testing::Test {
protected:
  bool refuse(const api_refusal& why, pod_question what = pod_question::made) {
    return refusals.on_refused(what, why, now);
  }
  bool ends(bool has_begun = false) const { return refusals.end(has_begun).has_value(); }

  pod_refusals refusals;
  time_point now{1h};
};

TEST_F(pod_refusals_test, a_quota_is_told_once_and_ends_nothing) {
  EXPECT_TRUE(refuse(no_room));
  for (int i = 0; i < 60; ++i, now += 1min) {
    EXPECT_FALSE(refuse({refusal_kind::no_room, "exceeded quota: 2"})) << "the same in other words";
    EXPECT_FALSE(ends());
  }
  EXPECT_THAT(refusals.told(), ElementsAre("exceeded quota: 2"));
  refusals.on_done(pod_question::made);
  EXPECT_THAT(refusals.told(), IsEmpty());
}

TEST_F(pod_refusals_test, what_comes_and_goes_is_told_again_after_a_minute) {
  EXPECT_TRUE(refuse(no_room));
  refusals.on_done(pod_question::made);
  now += 59s;
  EXPECT_FALSE(refuse(no_room));
  refusals.on_done(pod_question::made);
  now += 60s;
  EXPECT_TRUE(refuse(no_room));
  EXPECT_TRUE(refuse(not_allowed)) << "another kind";
  EXPECT_TRUE(refuse(not_allowed, pod_question::told)) << "another question";
}

TEST_F(pod_refusals_test, a_namespace_that_is_deleted_ends_the_job_at_once_begun_or_not) {
  refuse(going);
  for (const bool has_begun : {false, true}) {
    const auto why = refusals.end(has_begun);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->exit_code, 1);
    EXPECT_THAT(why->why, HasSubstr("namespace team-a is being terminated"));
  }
}

TEST_F(pod_refusals_test, a_missing_right_ends_a_job_that_waits_for_pods_when_it_is_refused_after_30_s) {
  refuse(no_right);
  now += 29s;
  refuse(no_right);
  EXPECT_FALSE(ends());
  now += 1h;
  EXPECT_FALSE(ends()) << "it was not asked for again";
  refuse(no_right);
  EXPECT_TRUE(ends());
  EXPECT_EQ(refusals.end(false)->exit_code, 2);
  EXPECT_THAT(refusals.end(false)->why, HasSubstr("create pods"));
}

TEST_F(pod_refusals_test, a_missing_right_does_not_end_a_job_that_trains) {
  refuse(no_right);
  now += 1h;
  refuse(no_right);
  EXPECT_FALSE(ends(true));
  EXPECT_THAT(refusals.told(), ElementsAre(HasSubstr("create pods")));
}

TEST_F(pod_refusals_test, a_right_that_was_given_meanwhile_counts_from_anew) {
  refuse(no_right);
  now += 20s;
  refusals.on_done(pod_question::made);
  now += 20s;
  refuse(no_right);
  now += 20s;
  refuse(no_right);
  EXPECT_FALSE(ends());
}

TEST_F(pod_refusals_test, ends_nothing_for_what_no_right_helps_against) {
  for (const auto& why : {not_allowed, no_room, api_refusal{refusal_kind::no_answer, "timed out"},
                          api_refusal{refusal_kind::wrong, "422"}}) {
    for (int i = 0; i < 10; ++i, now += 1min) refuse(why);
    EXPECT_FALSE(ends()) << why.message;
  }
}

TEST_F(pod_refusals_test, no_job_needs_the_right_to_delete_or_to_guard_in_order_to_begin) {
  for (const auto what : {pod_question::removed, pod_question::guarded})
    for (int i = 0; i < 10; ++i, now += 1min) refuse(no_right, what);
  EXPECT_FALSE(ends());
  for (const auto what : {pod_question::wanted, pod_question::told}) {
    pod_refusals other;
    other.on_refused(what, no_right, now);
    other.on_refused(what, no_right, now + 30s);
    EXPECT_TRUE(other.end(false));
  }
}

} // namespace
} // namespace dlrun::kubernetes
