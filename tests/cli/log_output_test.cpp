#include "cli/log_output.hpp"

#include "cli/complain.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

ordered_json line_of(log_level level, const std::string& message,
                     const ordered_json& fields = ordered_json::object()) {
  const auto line = json_log_line(level, message, fields);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  return ordered_json::parse(line);
}

TEST(json_log_line, says_when_how_grave_and_what_first) {
  const auto line = line_of(log_level::warning, "there is little room", {{"step", 7}, {"loss", 0.5}});
  std::vector<std::string> names;
  for (const auto& [name, value] : line.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"time", "level", "message", "step", "loss"}));
  EXPECT_TRUE(std::regex_match(line["time"].get<std::string>(),
                               std::regex{R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"}))
      << line;
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], "there is little room");
  EXPECT_EQ(line["step"], 7);
  EXPECT_EQ(line_of(log_level::info, "x")["level"], "info");
  EXPECT_EQ(line_of(log_level::error, "x")["level"], "error");
}

TEST(json_log_line, is_one_line_whatever_the_text_has) {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text.push_back(static_cast<char>(c));
  text += "\r\n\t\"\\ \u2028 é end";
  EXPECT_EQ(line_of(log_level::info, text)["message"], text);
  EXPECT_EQ(line_of(log_level::info, "of\nseveral\nlines\n")["message"], "of\nseveral\nlines");
}

TEST(json_log_line, replaces_what_is_no_utf8) {
  EXPECT_EQ(line_of(log_level::info, "a\xff/b\xc3")["message"], "a\ufffd/b\ufffd");
  EXPECT_EQ(line_of(log_level::info, "x", {{"path", "\xf0\x28"}})["path"], "\ufffd(");
}

TEST(json_log_line, has_null_for_what_is_no_number) {
  EXPECT_TRUE(line_of(log_level::info, "x", {{"loss", std::nan("")}})["loss"].is_null());
  EXPECT_TRUE(
      line_of(log_level::info, "x", {{"loss", std::numeric_limits<double>::infinity()}})["loss"].is_null());
}

TEST(json_log_line, keeps_its_own_names_to_itself) {
  const auto line = line_of(log_level::info, "text", {{"message", "other"}, {"time", 3}, {"level", 2}});
  EXPECT_EQ(line["message"], "text");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line.size(), 3U);
}

/// What is printed meanwhile.
class log_output_test : public testing::Test {
protected:
  ~log_output_test() override { choose_log_format(job::log_format::text); }
  template <class Printing>
  void printed(const Printing& print) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    print();
    std::fflush(stdout);
    out = testing::internal::GetCapturedStdout();
    complaints = testing::internal::GetCapturedStderr();
  }
  std::vector<ordered_json> lines() const {
    std::vector<ordered_json> all;
    std::istringstream in{out};
    for (std::string line; std::getline(in, line);) all.push_back(ordered_json::parse(line));
    return all;
  }

  std::string out, complaints;
};

TEST_F(log_output_test, is_text_for_people_where_nothing_else_is_asked_for) {
  printed([] {
    say(stdout, "step {}\n", 3);
    note("it waits");
    warn("little room");
    complain("it fails");
  });
  EXPECT_EQ(out, "step 3\n");
  EXPECT_EQ(complaints, "dlrun: it waits\ndlrun: warning: little room\ndlrun: it fails\n");
}

TEST_F(log_output_test, has_all_on_stdout_as_json) {
  choose_log_format(job::log_format::json);
  printed([] {
    say(stdout, "step {}\n", 3);
    say(stderr, "two\nlines\n");
    say(stdout, "\n");
    note("it waits");
    warn("little room");
    complain(error{error_code::bad_usage, "it fails"});
  });
  EXPECT_EQ(complaints, "");
  const std::vector<std::pair<std::string, std::string>> wanted{{"info", "step 3"},
                                                                {"info", "two\nlines"},
                                                                {"info", "it waits"},
                                                                {"warning", "little room"},
                                                                {"error", "it fails"}};
  std::vector<std::pair<std::string, std::string>> told;
  for (const auto& line : lines()) told.emplace_back(line["level"], line["message"]);
  EXPECT_EQ(told, wanted);
}

TEST_F(log_output_test, is_chosen_before_another_option_is_refused) {
  CLI::App app;
  add_log_format(app);
  EXPECT_THROW(app.parse("--log-format json --unknown"), CLI::ParseError);
  EXPECT_EQ(chosen_log_format(), job::log_format::json);
  CLI::App other;
  add_log_format(other);
  EXPECT_THROW(other.parse("--log-format xml"), CLI::ParseError);
  other.parse("--log-format text");
  EXPECT_EQ(chosen_log_format(), job::log_format::text);
}

} // namespace
} // namespace dlrun::cli
