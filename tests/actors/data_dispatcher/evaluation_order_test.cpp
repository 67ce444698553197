#include "actors/data_dispatcher/evaluation_order.hpp"

#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;
using workers = std::map<worker_id, incarnation>;

class evaluation_order_test : public testing::Test {
protected:
  /// Whom it asks now.
  std::vector<protocol::role_name> follow(const workers& heard, milliseconds after = milliseconds(0),
                                          protocol::evaluate due = {{0}, {8}}) {
    now += after;
    data_dispatcher_actions out;
    order.follow(due, heard, now, out);
    std::vector<protocol::role_name> asked;
    for (const auto& one : sent<protocol::evaluate>(out)) asked.push_back(one.to);
    return asked;
  }
  static std::vector<protocol::role_name> worker(std::uint32_t index) {
    return {protocol::worker_role({index})};
  }

  evaluation_order order{milliseconds(200)};
  protocol::time_point now{std::chrono::hours(1)};
};

TEST_F(evaluation_order_test, asks_one_worker_now_and_then) {
  EXPECT_THAT(follow({}), IsEmpty()) << "there is nobody";
  EXPECT_EQ(follow({{{0}, {1}}, {{1}, {1}}}), worker(0));
  EXPECT_THAT(follow({{{0}, {1}}, {{1}, {1}}}, milliseconds(199)), IsEmpty());
  EXPECT_EQ(follow({{{0}, {1}}, {{1}, {1}}}, milliseconds(1)), worker(0)) << "again";
}

TEST_F(evaluation_order_test, asks_another_when_that_one_is_not_heard_any_more) {
  follow({{{0}, {1}}, {{1}, {1}}});
  EXPECT_EQ(follow({{{1}, {1}}}), worker(1)) << "at once";
  EXPECT_THAT(follow({{{0}, {1}}, {{1}, {1}}}), IsEmpty()) << "and stays with it";
}

TEST_F(evaluation_order_test, a_worker_that_was_started_again_knows_nothing_of_it) {
  follow({{{0}, {1}}});
  EXPECT_EQ(follow({{{0}, {2}}}), worker(0));
}

TEST_F(evaluation_order_test, something_else_to_evaluate_is_asked_for_at_once) {
  follow({{{0}, {1}}});
  EXPECT_EQ(follow({{{0}, {1}}}, milliseconds(0), protocol::evaluate{{1}, {8}}), worker(0));
}

} // namespace
} // namespace dlrun::data_dispatcher
