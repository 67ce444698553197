#include "security/certificate_authority.hpp"
#include "security/clock_check.hpp"

#include <gmock/gmock.h>

namespace dlrun::security {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class clock_check : public ::testing::Test {
protected:
  /// Of a host whose root's clock is so far ahead of the one here.
  result<void> check(std::chrono::seconds ahead) const {
    return check_clock(
        authority.issue({"j1", "host_agent", 1, "beta"}, {std::chrono::system_clock::now() + ahead, 24h})
            .value());
  }

  certificate_authority authority = certificate_authority::make("j1").value();
};

TEST_F(clock_check, lets_clocks_differ_as_far_as_certificates_hold) {
  for (const auto ahead : {0s, 3600s, -3600s, -39600s}) EXPECT_TRUE(check(ahead)) << ahead.count();
}

TEST_F(clock_check, names_the_time_at_both_ends_when_they_differ_by_more) {
  for (const auto ahead : {7200s, -100000s}) {
    const auto wrong = check(ahead);
    ASSERT_FALSE(wrong) << ahead.count();
    EXPECT_EQ(wrong.error().code, error_code::bad_usage);
    EXPECT_THAT(
        wrong.error().message,
        ::testing::ContainsRegex("the clocks differ: here it is 2.* UTC, and on the root's host it was 2.* "
                                 "UTC when that made .* valid from 2.* UTC to 2.* UTC: set the clock"));
  }
}

TEST_F(clock_check, refuses_what_is_no_certificate) {
  EXPECT_EQ(check_clock({"none", {}, {}}).error().code, error_code::bad_usage);
}

} // namespace
} // namespace dlrun::security
