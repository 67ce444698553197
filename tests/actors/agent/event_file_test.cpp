#include "actors/agent/event_file.hpp"

#include "tests/actors/full_disk.hpp"
#include "tests/data/files.hpp"

#include <cerrno>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace dlrun::agent {
namespace {

class event_file_test : public testing::Test {
protected:
  std::string content() const {
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  test::temporary_folder folder;
  std::filesystem::path path = folder.path() / "events.jsonl";
};

TEST_F(event_file_test, goes_on_behind_what_is_there) {
  event_file{path}.append("one\n");
  event_file{path}.append("two\n");
  EXPECT_EQ(content(), "one\ntwo\n");
}

TEST_F(event_file_test, a_torn_last_line_is_cut_off_before_others_follow) {
  for (const std::string& torn :
       {std::string{R"({"event":"rew)"}, std::string(4096, '\0'), std::string{"\xff{}"}}) {
    std::ofstream{path} << "{\"event\":\"one\"}\n" << torn;
    event_file::mend_last_line(path);
    event_file{path}.append("{}\n");
    EXPECT_EQ(content(), "{\"event\":\"one\"}\n{}\n");
  }
}

TEST_F(event_file_test, a_last_line_that_is_whole_stays) {
  std::ofstream{path} << R"({"event":"one"})";
  event_file::mend_last_line(path);
  event_file{path}.append("{}\n");
  EXPECT_EQ(content(), "{\"event\":\"one\"}\n{}\n");
  event_file::mend_last_line(path);
  EXPECT_EQ(content(), "{\"event\":\"one\"}\n{}\n");
}

TEST_F(event_file_test, nothing_is_mended_where_nothing_is) {
  event_file::mend_last_line(path);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream{path} << "no newline, and no JSON";
  event_file::mend_last_line(path);
  EXPECT_EQ(content(), "");
}

TEST_F(event_file_test, a_full_disk_tears_no_line_and_loses_none) {
  event_file events{path};
  events.append("one\n");
  {
    const test::full_disk full{6};
    events.append("two\n");
    EXPECT_EQ(content(), "one\n");
    EXPECT_EQ(events.failure(), ENOSPC);
    events.append("three\n");
    events.flush();
    EXPECT_EQ(content(), "one\n");
  }
  events.flush();
  EXPECT_EQ(content(), "one\ntwo\nthree\n");
  EXPECT_EQ(events.failure(), 0);
  events.flush();
  events.append("four\n");
  EXPECT_EQ(content(), "one\ntwo\nthree\nfour\n");
}

TEST_F(event_file_test, what_waits_is_bounded_and_whole) {
  event_file events{path};
  const std::string line(std::size_t{700} << 10, 'x');
  {
    const test::full_disk full{0};
    events.append(line + '\n');
    events.append(line + '\n');
    events.append("last\n");
  }
  events.flush();
  EXPECT_EQ(content(), line + "\nlast\n");
}

TEST_F(event_file_test, a_file_that_cannot_be_opened_takes_nothing) {
  event_file events{folder.path() / "nowhere" / "events.jsonl"};
  events.append("one\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "nowhere"));
  EXPECT_EQ(events.failure(), ENOENT);
}

} // namespace
} // namespace dlrun::agent
