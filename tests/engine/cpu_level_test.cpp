#include "engine/cpu_level.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(cpu_level, is_what_the_process_computes_with_anyway_unless_one_is_named) {
  const auto own = instruction_set();
  EXPECT_TRUE(hold_to_cpu_level(""));
  EXPECT_TRUE(hold_to_cpu_level("auto"));
  EXPECT_EQ(instruction_set(), own);
}

TEST(cpu_level, does_not_change_once_it_was_asked_for) {
  const auto own = instruction_set();
  EXPECT_TRUE(hold_to_cpu_level(own));
  const std::string other = own == "avx" ? "avx2" : "avx";
  const auto held = hold_to_cpu_level(other);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, error_code::bad_usage);
  EXPECT_THAT(held.error().message,
              AllOf(HasSubstr("cluster.cpu_level: " + other), HasSubstr("computes with " + own)));
  EXPECT_EQ(instruction_set(), own);
}

} // namespace
} // namespace dlrun::engine
