#include "cli/json_display.hpp"

#include <bit>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using std::chrono::milliseconds;

constexpr protocol::time_point run_begin{std::chrono::seconds(1000)};

class json_display_test : public testing::Test {
protected:
  ~json_display_test() override {
    std::fclose(out);
    std::free(text);
  }
  /// The lines that were written since the last call.
  std::vector<nlohmann::json> shown() {
    std::fflush(out);
    std::istringstream written{std::string(text + read, size - read)};
    read = size;
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(written, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  void update(int ms, std::uint64_t step) {
    agent::run_snapshot now;
    now.step = step;
    now.steps = 100;
    display.update(now, run_begin + milliseconds(ms));
  }

  char* text = nullptr;
  std::size_t size = 0;
  std::size_t read = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  json_display display{out, run_begin};
};

TEST_F(json_display_test, progress_comes_at_most_once_a_second_and_only_when_there_is_some) {
  update(100, 5);
  update(600, 7);
  update(1100, 9);
  update(2500, 9);
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["type"], "progress");
  EXPECT_EQ(lines[0]["step"], 5);
  EXPECT_EQ(lines[1]["step"], 9);
  EXPECT_EQ(lines[1]["steps"], 100);
  EXPECT_DOUBLE_EQ(lines[1]["seconds"], 1.1);
}

TEST_F(json_display_test, an_event_is_shown_at_once) {
  display.event({.event = "role-exited",
                 .role = {protocol::role_kind::worker, 2},
                 .incarnation = {3},
                 .text = "killed",
                 .at_us = 1'001'500'000});
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["type"], "event");
  EXPECT_EQ(lines[0]["role"], "worker");
  EXPECT_EQ(lines[0]["index"], 2);
  EXPECT_DOUBLE_EQ(lines[0]["seconds"], 1.5);
}

TEST_F(json_display_test, what_an_event_says_in_numbers_is_there_in_numbers) {
  protocol::job_event event;
  event.event = "evaluated";
  event.text = "step 63";
  event.numbers = {.has_step = true, .step = 63, .values = {{"loss", std::bit_cast<std::uint64_t>(0.125)}}};
  display.event(event);
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["step"], 63);
  EXPECT_EQ(lines[0]["values"]["loss"], 0.125);
  EXPECT_FALSE(lines[0].contains("after_ms"));
}

TEST_F(json_display_test, the_report_is_the_last_line_and_whole) {
  dlrun::report report;
  report.job = "x";
  report.status = dlrun::run_status::completed;
  report.train_loss = std::numeric_limits<double>::quiet_NaN();
  display.summary(report, "/runs/x/report.json");
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["type"], "report");
  EXPECT_EQ(lines[0]["path"], "/runs/x/report.json");
  EXPECT_EQ(lines[0]["report"]["status"], "completed");
  EXPECT_TRUE(lines[0]["report"]["train_loss"].is_null());
}

} // namespace
} // namespace dlrun::cli
