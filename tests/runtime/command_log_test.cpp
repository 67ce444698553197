#include "runtime/command_log.hpp"

#include "base/unique_fd.hpp"
#include "tests/data/files.hpp"

#include <array>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

class command_log_test : public testing::Test {
protected:
  void write(const std::string& text) { std::ofstream(log, std::ios::binary | std::ios::app) << text; }
  std::string content() const {
    std::ifstream stream(log, std::ios::binary);
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  test::temporary_folder folder;
  const std::filesystem::path log = folder.path() / "host-beta.log";
};

TEST_F(command_log_test, the_last_line_is_of_what_was_written_since) {
  write("long ago\n");
  EXPECT_EQ(last_line(log, 9), "");
  write("one\ntwo\n\n");
  EXPECT_EQ(last_line(log, 9), "two");
  EXPECT_EQ(last_line(folder.path() / "none", 0), "");
}

TEST_F(command_log_test, a_last_line_without_end_is_told_in_part) {
  write(std::string(3 * command_log_bytes_max, 'x'));
  EXPECT_EQ(last_line(log, 0), std::string(4096, 'x') + "...");
}

TEST_F(command_log_test, a_log_that_is_small_enough_stays_as_it_is) {
  const std::string text(command_log_bytes_max, 'x');
  write(text);
  EXPECT_EQ(shorten_log(log, 7), 7U);
  EXPECT_EQ(content(), text);
}

/// A watcher looks at it twenty times a second, for as long as the job lasts.
TEST_F(command_log_test, a_log_that_is_small_enough_is_not_opened) {
  write("quiet since\n");
  const base::unique_fd watch{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  ASSERT_GE(::inotify_add_watch(watch.get(), log.c_str(), IN_OPEN), 0);
  const auto was_opened = [&] {
    std::array<char, 256> events{};
    return ::read(watch.get(), events.data(), events.size()) > 0;
  };
  shorten_log(log, 0);
  EXPECT_FALSE(was_opened());
  write(std::string(command_log_bytes_max, 'x'));
  EXPECT_TRUE(was_opened());
  shorten_log(log, 0);
  EXPECT_TRUE(was_opened()) << "a larger one is";
}

TEST_F(command_log_test, of_a_larger_one_both_ends_are_kept) {
  write("begin\n");
  write(std::string(10 * command_log_bytes_max, 'x'));
  write("\nend\n");
  EXPECT_EQ(shorten_log(log, 6), 6U);
  const auto left = content();
  EXPECT_TRUE(left.starts_with("begin\nxxx"));
  EXPECT_TRUE(left.ends_with("xxx\nend\n"));
  EXPECT_THAT(left, HasSubstr("bytes are left out here]\n"));
  EXPECT_LT(left.size(), 2 * command_log_end_bytes + 100);
  EXPECT_EQ(last_line(log, 6), "end");
}

TEST_F(command_log_test, what_begins_in_the_middle_begins_behind_the_first_end_then) {
  write(std::string(command_log_bytes_max, 'x') + "\n");
  const auto from = std::filesystem::file_size(log);
  write("new\n");
  const auto begins = shorten_log(log, from);
  EXPECT_EQ(begins, command_log_end_bytes);
  EXPECT_EQ(last_line(log, begins), "new");
}

} // namespace
} // namespace dlrun::runtime
