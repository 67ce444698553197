#include "runtime/command_log.hpp"

#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
