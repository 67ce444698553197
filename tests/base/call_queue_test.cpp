#include "base/call_queue.hpp"

#include <gmock/gmock.h>
#include <memory>

namespace dlrun::base {
namespace {

using testing::ElementsAre;

TEST(call_queue, gives_calls_in_their_order_as_many_as_are_wanted) {
  call_queue<int> queue("the test", "calls wait", 10);
  for (const int call : {1, 2, 3}) EXPECT_TRUE(queue.add(call));
  EXPECT_THAT(queue.take(2), ElementsAre(1, 2));
  EXPECT_TRUE(queue.has_waiting());
  EXPECT_THAT(queue.take(), ElementsAre(3));
  EXPECT_FALSE(queue.has_waiting());
  EXPECT_THAT(queue.take(), ElementsAre());
}

TEST(call_queue, counts_a_call_until_it_is_answered) {
  call_queue<int> queue("the test", "calls wait", 2);
  EXPECT_TRUE(queue.add(1));
  EXPECT_TRUE(queue.add(2));
  queue.take(1); // being worked on
  const auto refused = queue.add(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::limit_exceeded);
  EXPECT_EQ(refused.error().message, "2 calls wait");
  queue.count_answered();
  EXPECT_TRUE(queue.add(3));
}

TEST(call_queue, a_closed_one_refuses_calls_and_gives_those_that_wait) {
  call_queue<std::unique_ptr<int>> queue("the test", "calls wait", 2);
  EXPECT_TRUE(queue.add(std::make_unique<int>(1)));
  queue.close();
  const auto refused = queue.add(std::make_unique<int>(2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::interrupted);
  EXPECT_EQ(refused.error().message, "the test is stopping");
  EXPECT_EQ(queue.take().size(), 1U);
}

} // namespace
} // namespace dlrun::base
