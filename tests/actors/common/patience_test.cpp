#include "actors/common/patience.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace dlrun::common {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// Fails with each of these, one after the other, then gives 7.
class door {
public:
  explicit door(std::vector<error_code> fails_with)
      : fails_with_(std::move(fails_with)) {}

  result<int> operator()() {
    if (tries_ == fails_with_.size()) return 7;
    return fail(fails_with_[tries_++], "closed");
  }
  std::size_t tries() const { return tries_; }

private:
  std::vector<error_code> fails_with_;
  std::size_t tries_ = 0;
};

TEST(patience, waits_for_the_process_that_holds_it) {
  door closed{{error_code::in_use, error_code::in_use}};
  EXPECT_EQ(try_patiently(hours(1), {}, std::ref(closed)), 7);
}

TEST(patience, gives_a_holder_up_when_its_patience_is_over) {
  door closed{{error_code::in_use, error_code::in_use}};
  EXPECT_EQ(try_patiently(milliseconds(-1), {}, std::ref(closed)).error().code, error_code::in_use);
  EXPECT_EQ(closed.tries(), 1U);
}

TEST(patience, waits_for_room_as_long_as_it_is_wanted) {
  std::vector<std::string> told;
  const full_disk_watcher tell{[&](const error& why) {
                                 told.push_back(why.message);
                                 return told.size() < 4;
                               },
                               [&] { told.emplace_back("over"); }};
  door closed{{error_code::disk_full, error_code::disk_full}};
  EXPECT_EQ(try_patiently(milliseconds(0), tell, std::ref(closed), milliseconds(1)), 7);
  EXPECT_EQ(told, (std::vector<std::string>{"closed", "closed", "over"}));
  door never{{error_code::disk_full, error_code::disk_full}};
  EXPECT_EQ(try_patiently(milliseconds(0), tell, std::ref(never), milliseconds(1)).error().code,
            error_code::disk_full);
  EXPECT_EQ(never.tries(), 1U);
}

TEST(patience, gives_up_at_once_what_waiting_does_not_mend) {
  door full{{error_code::disk_full}};
  EXPECT_EQ(try_patiently(hours(1), {}, std::ref(full)).error().code, error_code::disk_full);
  door damaged{{error_code::storage_damaged}};
  const full_disk_watcher wait{[](const error&) { return true; }, [] { FAIL(); }};
  EXPECT_EQ(try_patiently(hours(1), wait, std::ref(damaged)).error().code, error_code::storage_damaged);
}

} // namespace
} // namespace dlrun::common
