#include "actors/common/role_log.hpp"

#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::common {
namespace {

using testing::MatchesRegex;
using testing::SizeIs;

constexpr protocol::role_name shard{protocol::role_kind::ps_shard, 1};

class role_log_test : public testing::Test {
protected:
  role_log_test() { std::filesystem::create_directories(folder.path() / "logs"); }

  std::shared_ptr<spdlog::logger> make(const std::string& format, std::uint64_t incarnation = 3) const {
    return make_role_log(*test::small_job(folder.path(), {"observability.log_format=" + format}), shard,
                         {incarnation});
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream file{role_log_path(folder.path(), shard)};
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  test::temporary_folder folder;
};

TEST_F(role_log_test, a_line_of_text_has_a_head) {
  make("text")->warn("disk-full: waits for {} MB", 3);
  ASSERT_THAT(lines(), SizeIs(1));
  EXPECT_THAT(lines()[0],
              MatchesRegex("[0-9-]+T[0-9:.]+ warning ps_shard-1 inc=3 disk-full: waits for 3 MB"));
}

TEST_F(role_log_test, a_line_of_json_is_an_object_of_the_same) {
  make("json")->warn("disk-full: waits for {} MB", 3);
  ASSERT_THAT(lines(), SizeIs(1));
  const auto line = nlohmann::ordered_json::parse(lines()[0]);
  EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]{3}[+-][0-9:]{5}"));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["role"], "ps_shard");
  EXPECT_EQ(line["index"], 1);
  EXPECT_EQ(line["incarnation"], 3);
  EXPECT_EQ(line["event"], "disk-full");
  EXPECT_EQ(line["text"], "waits for 3 MB");
  EXPECT_EQ(line.size(), 7U);
}

TEST_F(role_log_test, json_is_one_line_whatever_is_logged) {
  const auto log = make("json");
  const std::string odd = "quotes \" and \\ and\nlines and {braces} and %l";
  log->info("{}", odd);
  log->error("not UTF-8: \xff");
  log->info("{}", "");
  ASSERT_THAT(lines(), SizeIs(3));
  EXPECT_EQ(nlohmann::json::parse(lines()[0])["text"], odd);
  EXPECT_EQ(nlohmann::json::parse(lines()[0])["event"], "");
  EXPECT_EQ(nlohmann::json::parse(lines()[1])["level"], "error");
  EXPECT_EQ(nlohmann::json::parse(lines()[2])["text"], "");
}

TEST_F(role_log_test, one_that_cannot_be_written_is_told_once_and_as_all_is_told) {
  std::filesystem::create_symlink("/dev/full", role_log_path(folder.path(), shard));
  testing::internal::CaptureStderr();
  const auto log = make("text");
  log->info("started: once");
  log->info("started: again");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex(
                  "dlrun: warning: cannot write the log '[^\n]*/ps_shard-1.log': No space left on device\n"));
}

TEST_F(role_log_test, a_restarted_role_appends) {
  make("json", 1)->info("started: once");
  make("json", 2)->info("started: again");
  ASSERT_THAT(lines(), SizeIs(2));
  EXPECT_EQ(nlohmann::json::parse(lines()[1])["incarnation"], 2);
}

TEST(split_event, only_a_word_of_small_letters_is_an_event) {
  EXPECT_EQ(split_event("lease: slots: 4").event, "lease");
  EXPECT_EQ(split_event("lease: slots: 4").text, "slots: 4");
  for (const auto* text : {"Reading 3 files: a", "a b: c", "no event", ": x", "lease:x", ""}) {
    EXPECT_EQ(split_event(text).event, "") << text;
    EXPECT_EQ(split_event(text).text, text);
  }
}

} // namespace
} // namespace dlrun::common
