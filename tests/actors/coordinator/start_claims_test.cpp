#include "actors/coordinator/start_claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using protocol::role_name;
using testing::HasSubstr;

constexpr role_name claimed{protocol::role_kind::worker, 0};

/// Worker 0 has two fences, of incarnations 1 and 2, issued to an agent before this one, and two of
/// this one.
class start_claims_test : public testing::Test {
protected:
  start_claims_test() {
    fences.issue(claimed, 2);
    earlier = fences.granted(claimed);
    fences.serve(8);
    fences.issue(claimed, 2);
    granted = fences.granted(claimed);
  }
  void start(const fence& self) {
    fences.use(claimed, self);
    starts.begin(claimed, self);
  }
  static protocol::join join(const fence& self, const role_name& role = claimed) {
    return {.role = role, .self = self, .pid = 1, .at = {}, .fingerprint = "A", .device = "cpu"};
  }
  std::string why_refused(const protocol::join& join) const {
    return start_claims::why_refused(starts, fences, join);
  }
  bool is_believed(const fence& self, claimant by) const {
    return start_claims::is_believed(starts, fences, claimed, self, by);
  }

  std::uint64_t token = 1000;
  fence_book fences{{false, 7, [this] { return ++token; }}, {claimed}};
  start_book starts{{claimed}};
  std::vector<fence> earlier;
  std::vector<fence> granted;
};

TEST_F(start_claims_test, a_start_with_a_fence_that_was_granted_may_take_part) {
  EXPECT_EQ(why_refused(join(granted[0])), "");
  EXPECT_EQ(why_refused(join(granted[1])), "");
  start(granted[0]);
  EXPECT_EQ(why_refused(join(granted[0])), "");
}

TEST_F(start_claims_test, another_token_or_an_older_start_may_not) {
  EXPECT_THAT(why_refused(join({granted[0].incarnation, 1})), HasSubstr("never issued with this token"));
  start(granted[1]);
  EXPECT_THAT(why_refused(join(granted[0])), HasSubstr("is not the newest, which is 4"));
}

TEST_F(start_claims_test, one_that_is_over_may_not) {
  start(granted[0]);
  starts.end(claimed);
  EXPECT_THAT(why_refused(join(granted[0])), HasSubstr("is over; the newest that was issued is 4"));
}

TEST_F(start_claims_test, a_role_that_the_job_has_not_or_that_joins_nobody_may_not) {
  EXPECT_EQ(why_refused(join(granted[0], {protocol::role_kind::worker, 9})),
            "this job has no worker 9 that could join");
  EXPECT_THAT(why_refused(join(granted[0], {protocol::role_kind::keeper, 0})), HasSubstr("could join"));
}

TEST_F(start_claims_test, one_that_computes_other_bits_may_not) {
  starts.arithmetic().note(join(granted[0]));
  auto other = join(granted[0]);
  other.fingerprint = "B";
  EXPECT_THAT(why_refused(other), HasSubstr("'B'"));
}

TEST_F(start_claims_test, what_an_earlier_agent_made_is_believed_of_the_agent_alone_and_waited_for) {
  EXPECT_FALSE(is_believed(earlier[0], claimant::role));
  EXPECT_TRUE(is_believed(earlier[0], claimant::agent));
  EXPECT_TRUE(start_claims::awaits_agent(starts, fences, join(earlier[0])));
  start(earlier[0]);
  EXPECT_FALSE(start_claims::awaits_agent(starts, fences, join(earlier[0])));
  EXPECT_TRUE(is_believed(earlier[0], claimant::role));
}

TEST_F(start_claims_test, nobody_is_waited_for_with_a_fence_of_this_agent_or_of_nobody) {
  EXPECT_FALSE(start_claims::awaits_agent(starts, fences, join(granted[0])));
  EXPECT_FALSE(start_claims::awaits_agent(starts, fences, join({{1}, 1})));
  start(granted[0]);
  EXPECT_FALSE(start_claims::awaits_agent(starts, fences, join(earlier[1]))) << "a newer one has begun";
}

} // namespace
} // namespace dlrun::coordinator
