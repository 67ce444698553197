#include "actors/agent/process/oom_watch.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

using std::chrono::milliseconds;

class oom_watch_test : public ::testing::Test {
protected:
  std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("dlrun-memory-events-" + std::to_string(::getpid()));
  oom_watch::time_point now{std::chrono::hours(1)};

  oom_watch_test() { count(3); }
  ~oom_watch_test() override { std::filesystem::remove(file); }

  void count(int kills) { std::ofstream(file) << "low 0\nhigh 1\nmax 7\noom 4\noom_kill " << kills << "\n"; }
};

TEST_F(oom_watch_test, a_kill_that_was_counted_just_now_is_seen_and_an_old_one_is_not) {
  oom_watch watch(file);
  EXPECT_FALSE(watch.killed_lately());
  count(4);
  EXPECT_TRUE(watch.killed_lately());
  watch.sample(now += milliseconds(1000));
  EXPECT_TRUE(watch.killed_lately()) << "its exit may be on the way";
  watch.sample(now += milliseconds(100));
  EXPECT_TRUE(watch.killed_lately());
  watch.sample(now += milliseconds(1000));
  EXPECT_FALSE(watch.killed_lately());
}

TEST_F(oom_watch_test, without_such_a_file_nothing_is_seen) {
  EXPECT_FALSE(oom_watch("/nowhere/memory.events").killed_lately());
  EXPECT_FALSE(oom_watch(std::filesystem::path{}).killed_lately());
}

} // namespace
} // namespace dlrun::agent
