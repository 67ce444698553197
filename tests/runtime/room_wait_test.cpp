// What the root of a run that goes on writes while its disk is full.
#include "runtime/room_wait.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace dlrun::runtime {
namespace {

class told_observer final : public run_observer {
public:
  void update(const agent::run_snapshot&, protocol::time_point) override {}
  void event(const protocol::job_event&) override {}
  void summary(const report&, const std::string&) override {}
  void waits(const std::string& text) override { waited.push_back(text); }
  std::optional<stop_wish> asked_to_stop() override { return wish; }

  std::vector<std::string> waited;
  std::optional<stop_wish> wish;
};

/// Fails so often with `code`, then succeeds.
struct failing_write {
  result<void> operator()() {
    ++calls;
    if (failures == 0) return {};
    --failures;
    return fail(code, "cannot write it");
  }
  int failures;
  error_code code = error_code::disk_full;
  int calls = 0;
};

class room_wait : public testing::Test {
protected:
  result<void> write(failing_write& attempt) {
    return writing_with_patience(seen, [this] { return stopped; })(std::ref(attempt));
  }

  told_observer seen;
  bool stopped = false;
};

TEST_F(room_wait, writes_again_until_there_is_room_and_says_so_once) {
  failing_write attempt{3};
  EXPECT_TRUE(write(attempt));
  EXPECT_EQ(attempt.calls, 4);
  ASSERT_EQ(seen.waited.size(), 2U);
  EXPECT_EQ(seen.waited.front(), "the disk is full: cannot write it; the run waits until there is room");
}

TEST_F(room_wait, ends_when_a_signal_comes_or_the_run_is_stopped) {
  failing_write for_ever{1000};
  seen.wish = stop_wish{"interrupted by a signal", {}};
  const auto by_signal = write(for_ever);
  ASSERT_FALSE(by_signal);
  EXPECT_EQ(by_signal.error().code, error_code::interrupted);
  EXPECT_EQ(by_signal.error().message, "interrupted by a signal");
  seen.wish.reset();
  stopped = true;
  const auto by_stop = write(for_ever);
  ASSERT_FALSE(by_stop);
  EXPECT_EQ(by_stop.error().code, error_code::interrupted);
}

TEST_F(room_wait, does_not_wait_for_other_failures) {
  failing_write attempt{1, error_code::system};
  const auto written = write(attempt);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::system);
  EXPECT_EQ(attempt.calls, 1);
  EXPECT_TRUE(seen.waited.empty());
}

TEST_F(room_wait, of_a_run_that_begins_there_is_none) {
  failing_write attempt{1};
  const auto written = writing_once()(std::ref(attempt));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::disk_full);
}

} // namespace
} // namespace dlrun::runtime
