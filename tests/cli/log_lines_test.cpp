#include "cli/log_lines.hpp"

#include "actors/common/role_log.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class log_lines_test : public testing::Test {
protected:
  log_lines_test() { std::filesystem::create_directories(folder.path() / "logs"); }

  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / "logs" / name, std::ios::app) << text;
  }
  std::vector<std::string> all(log_merger& logs) const {
    std::vector<std::string> lines;
    while (const auto line = logs.next()) lines.push_back(line->whole);
    return lines;
  }
  static std::string line(const std::string& second, const std::string& role, const std::string& text,
                          const std::string& level = "info") {
    return "2026-11-22T02:40:" + second + " " + level + " " + role + " inc=1 " + text;
  }

  test::temporary_folder folder;
};

TEST_F(log_lines_test, a_line_is_taken_apart) {
  const auto parsed =
      parse_log_line("2026-11-22T02:40:11.123 warning ps_shard-12 inc=1025 disk-full: waits for 3 MB: now");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->head.time, "2026-11-22T02:40:11.123");
  EXPECT_EQ(parsed->head.level, "warning");
  EXPECT_EQ(parsed->head.role, "ps_shard");
  EXPECT_EQ(parsed->head.index, 12U);
  EXPECT_EQ(parsed->head.incarnation, 1025U);
  EXPECT_EQ(parsed->event, "disk-full");
  EXPECT_EQ(parsed->text, "waits for 3 MB: now");
}

TEST_F(log_lines_test, a_text_without_an_event_has_none) {
  EXPECT_EQ(parse_log_line(line("11.123", "worker-0", "Reading 3 files: a, b"))->event, "");
}

TEST_F(log_lines_test, what_has_no_head_is_no_line_of_its_own) {
  for (const auto* text :
       {"", "terminate called", "2026-11-22T02:40:11.123", "2026-11-22T02:40:11.123 info",
        "2026-11-22T02:40:11.123 info worker inc=1 x", "2026-11-22T02:40:11.123 loud worker-0 inc=1 x",
        "2026-11-22T02:40:11.123 info worker-0 inc=one x"})
    EXPECT_FALSE(parse_log_line(text)) << text;
}

constexpr auto json_line = R"({"time":"2026-11-22T02:40:02.500+01:00","level":"warning","role":"ps_shard",)"
                           R"("index":12,"incarnation":1025,"event":"disk-full","text":"waits: a\nb"})";

TEST_F(log_lines_test, a_line_in_json_is_taken_apart_and_shown_as_text) {
  const auto parsed = parse_log_line(json_line);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->head.time, "2026-11-22T02:40:02.500");
  EXPECT_EQ(parsed->head.level, "warning");
  EXPECT_EQ(parsed->head.role, "ps_shard");
  EXPECT_EQ(parsed->head.index, 12U);
  EXPECT_EQ(parsed->head.incarnation, 1025U);
  EXPECT_EQ(parsed->event, "disk-full");
  EXPECT_EQ(parsed->text, "waits: a\nb");
  EXPECT_EQ(parsed->whole, "2026-11-22T02:40:02.500 warning ps_shard-12 inc=1025 disk-full: waits: a\nb");
  EXPECT_THAT(to_json(*parsed), HasSubstr(R"("event":"disk-full","text":"waits: a\nb")"));
}

TEST_F(log_lines_test, what_a_role_logs_is_read_in_both_forms) {
  for (const std::string format : {"text", "json"}) {
    const auto job = test::small_job(folder.path(), {"observability.log_format=" + format});
    common::make_role_log(*job, {protocol::role_kind::worker, 2}, {7})->warn("lease: slots [0, {})", 4);
  }
  log_merger logs{folder.path(), {"worker-2", "warning"}};
  for (int form = 0; form < 2; ++form) {
    const auto read = logs.next();
    ASSERT_TRUE(read) << form;
    EXPECT_EQ(read->head.incarnation, 7U);
    EXPECT_EQ(read->event, "lease");
    EXPECT_EQ(read->text, "slots [0, 4)");
    EXPECT_THAT(read->whole, HasSubstr(" warning worker-2 inc=7 lease: slots [0, 4)"));
  }
  EXPECT_FALSE(logs.next());
}

TEST_F(log_lines_test, json_of_others_is_no_line_of_its_own) {
  const std::string whole = json_line;
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_FALSE(parse_log_line(whole.substr(0, length))) << length;
  for (const auto* text : {"{}", R"({"time":3})", R"({"level":"info"})", "{\xff}"})
    EXPECT_FALSE(parse_log_line(text)) << text;
  auto loud = whole;
  loud.replace(loud.find("warning"), 7, "loud");
  EXPECT_FALSE(parse_log_line(loud));
}

TEST_F(log_lines_test, a_run_whose_form_of_logs_was_changed_is_one_stream) {
  append("ps_shard-12.log", line("01.000", "ps_shard-12", "a") + "\n" + json_line + "\nterminate called\n");
  append("worker-0.log", line("02.000", "worker-0", "b") + "\n" + line("03.000", "worker-0", "c") + "\n");
  log_merger logs{folder.path(), {"", "info"}};
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" a"), HasSubstr(" b"), HasSubstr("disk-full"),
                                     "terminate called", HasSubstr(" c")));
}

TEST_F(log_lines_test, files_are_merged_by_time_and_lines_without_one_stay_behind_theirs) {
  append("worker-0.log",
         line("01.000", "worker-0", "a") + "\n  stack trace\n" + line("03.000", "worker-0", "c") + "\n");
  append("worker-1.log", line("02.000", "worker-1", "b") + "\n");
  log_merger logs{folder.path(), {}};
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" a"), "  stack trace", HasSubstr(" b"), HasSubstr(" c")));
}

TEST_F(log_lines_test, what_is_written_later_comes_later_also_from_a_new_file) {
  append("worker-0.log", line("01.000", "worker-0", "a") + "\n" + "2026-11-22T02:4");
  log_merger logs{folder.path(), {}};
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" a")));
  append("worker-0.log", "0:02.000 info worker-0 inc=1 b\n");
  append("ps_shard-0.log", line("03.000", "ps_shard-0", "c") + "\n");
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" b"), HasSubstr(" c")));
}

TEST_F(log_lines_test, what_stands_behind_the_last_newline_is_a_line_once_nobody_waits_for_more) {
  append("worker-0.log", line("01.000", "worker-0", "a") + "\nlast words");
  append("worker-1.log", line("02.000", "worker-1", "torn"));
  log_merger logs{folder.path(), {}};
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" a")));
  logs.take_rests();
  EXPECT_THAT(all(logs), ElementsAre("last words", HasSubstr(" torn")));
  EXPECT_THAT(all(logs), IsEmpty());
}

TEST_F(log_lines_test, a_role_or_one_of_its_kind_may_be_asked_for) {
  append("worker-0.log", line("01.000", "worker-0", "a") + "\n");
  append("worker-1.log", line("02.000", "worker-1", "b") + "\n");
  append("agent-0.log", line("03.000", "agent-0", "c") + "\n");
  log_merger kind{folder.path(), {"worker", ""}};
  EXPECT_THAT(all(kind), ElementsAre(HasSubstr(" a"), HasSubstr(" b")));
  log_merger one{folder.path(), {"worker-1", ""}};
  EXPECT_THAT(all(one), ElementsAre(HasSubstr(" b")));
}

TEST_F(log_lines_test, a_level_asks_for_what_is_as_bad_or_worse) {
  append("worker-0.log", line("01.000", "worker-0", "a") + "\n" + line("02.000", "worker-0", "b", "error") +
                             "\n" + line("03.000", "worker-0", "c", "warning") + "\n");
  log_merger logs{folder.path(), {"", "warning"}};
  EXPECT_THAT(all(logs), ElementsAre(HasSubstr(" b"), HasSubstr(" c")));
}

TEST_F(log_lines_test, a_filter_that_names_nothing_is_refused) {
  EXPECT_TRUE(check({"data_dispatcher", "error"}));
  EXPECT_TRUE(check({"ps_shard-3", ""}));
  EXPECT_THAT(check({"wroker", ""}).error().message,
              HasSubstr("roles are coordinator, data_dispatcher, ps_shard"));
  EXPECT_THAT(check({"", "warn"}).error().message, HasSubstr("levels are trace"));
}

TEST_F(log_lines_test, json_is_one_line_whatever_a_library_prints) {
  log_line strange;
  strange.text = "a\n\xff";
  EXPECT_THAT(to_json(strange), HasSubstr(R"("text":"a\n)"));
  EXPECT_EQ(to_json(strange).find('\n'), std::string::npos);
}

} // namespace
} // namespace dlrun::cli
