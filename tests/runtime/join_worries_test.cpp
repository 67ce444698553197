#include "runtime/join_worries.hpp"

#include <gmock/gmock.h>
#include <vector>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;

TEST(join_worries, come_after_30_s_and_then_more_and_more_rarely) {
  const join_worries::time_point began{1h};
  join_worries worries{began};
  std::vector<std::chrono::seconds> at;
  for (auto time = 0s; time <= 4h; time += 10s)
    if (worries.is_due(began + time)) at.push_back(time);
  EXPECT_THAT(at, testing::ElementsAre(30s, 330s, 660s, 1320s, 2640s, 5280s, 8880s, 12480s));
  EXPECT_EQ(worries.lasts(began + 90s + 500ms), 90s);
}

TEST(join_worries, of_a_host_that_could_not_run_meanwhile_come_once) {
  const join_worries::time_point began{1h};
  join_worries worries{began};
  EXPECT_TRUE(worries.is_due(began + 10h));
  EXPECT_FALSE(worries.is_due(began + 10h + 1s));
}

} // namespace
} // namespace dlrun::runtime
