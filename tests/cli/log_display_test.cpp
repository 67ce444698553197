#include "cli/log_display.hpp"

#include "actors/agent/event_json.hpp"

#include <bit>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr protocol::time_point log_begin{std::chrono::seconds(1000)};

class log_display_test : public testing::Test {
protected:
  ~log_display_test() override {
    std::fclose(out);
    std::free(text);
  }
  /// The lines that were written since the last call.
  std::vector<ordered_json> shown() {
    std::fflush(out);
    std::istringstream written{std::string(text + read, size - read)};
    read = size;
    std::vector<ordered_json> lines;
    for (std::string line; std::getline(written, line);) lines.push_back(ordered_json::parse(line));
    return lines;
  }
  static agent::run_snapshot at_step(std::uint64_t step) {
    agent::run_snapshot now;
    now.step = step;
    now.durable_step = step - 1;
    now.steps = 100;
    return now;
  }
  void update(int ms, const agent::run_snapshot& now) { display.update(now, log_begin + milliseconds(ms)); }
  ordered_json shown_event(const protocol::job_event& event) {
    display.event(event);
    const auto lines = shown();
    EXPECT_EQ(lines.size(), 1U);
    return lines.at(0);
  }

  char* text = nullptr;
  std::size_t size = 0;
  std::size_t read = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  log_display display{out, 100};
};

TEST_F(log_display_test, progress_comes_at_most_every_two_seconds_and_only_when_there_is_some) {
  update(100, at_step(5));
  update(1900, at_step(7));
  update(2200, at_step(9));
  update(5000, at_step(9));
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["step"], 5);
  EXPECT_EQ(lines[1]["step"], 9);
}

TEST_F(log_display_test, a_step_is_told_in_words_and_in_numbers) {
  auto now = at_step(9);
  now.train = agent::training_progress{.step = 9,
                                       .step_loss = 0.123456,
                                       .epoch = 1,
                                       .loss = 0.5,
                                       .metrics = {{"accuracy", 0.75}, {"step", 4}}};
  update(0, now);
  const auto line = shown().at(0);
  EXPECT_EQ(line["type"], "progress");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["message"], "step 9/100  loss 0.1235  accuracy 0.7500  step 4.0000");
  EXPECT_EQ(line["step"], 9) << "a metric of that name does not hide it";
  EXPECT_EQ(line["steps"], 100);
  EXPECT_EQ(line["durable_step"], 8);
  EXPECT_EQ(line["epoch"], 1);
  EXPECT_EQ(line["loss"], 0.123456);
  EXPECT_EQ(line["accuracy"], 0.75);
}

TEST_F(log_display_test, a_loss_that_is_no_number_is_null) {
  auto now = at_step(9);
  now.train = agent::training_progress{.step_loss = std::numeric_limits<double>::quiet_NaN()};
  update(0, now);
  EXPECT_TRUE(shown().at(0)["loss"].is_null());
}

TEST_F(log_display_test, an_event_has_the_fields_of_its_line_in_events_jsonl) {
  protocol::job_event event;
  event.event = "role-exited";
  event.role = {protocol::role_kind::worker, 2};
  event.incarnation = {3};
  event.text = "killed,\nit seems";
  event.at_us = 1'001'500'000;
  event.numbers = {.has_step = true,
                   .step = 63,
                   .after_us = 1500,
                   .values = {{"loss", std::bit_cast<std::uint64_t>(0.125)}}};
  event.place = {"beta", "a signal"};
  auto line = shown_event(event);
  EXPECT_EQ(line["type"], "event");
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], "role-exited: killed,\nit seems");
  auto kept = ordered_json::parse(agent::to_json_line(event));
  for (const auto* own : {"type", "level", "message", "time"}) line.erase(own);
  kept.erase("time");
  EXPECT_EQ(line, kept);
}

TEST_F(log_display_test, only_what_has_failed_is_a_warning) {
  const auto level = [&](const char* name) {
    protocol::job_event event;
    event.event = name;
    return shown_event(event)["level"];
  };
  for (const auto* name :
       {"host-joined", "role-placed", "worker-resumed", "evaluated", "archived", "disk-ok"})
    EXPECT_EQ(level(name), "info") << name;
  for (const auto* name : {"host-lost", "role-hung", "disk-full", "journal-away", "stalled"})
    EXPECT_EQ(level(name), "warning") << name;
}

TEST_F(log_display_test, the_end_is_one_line_with_its_counts) {
  dlrun::report report;
  report.status = dlrun::run_status::completed;
  report.steps = 1000;
  report.samples_committed = 64000;
  report.train_loss = std::numeric_limits<double>::quiet_NaN();
  report.parameters_sha256 = "abc";
  report.recoveries.resize(2000);
  display.summary(report, "/runs/x/report.json");
  const auto lines = shown();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["type"], "report");
  EXPECT_EQ(lines[0]["status"], "completed");
  EXPECT_EQ(lines[0]["steps"], 1000);
  EXPECT_EQ(lines[0]["samples_committed"], 64000);
  EXPECT_EQ(lines[0]["parameters_sha256"], "abc");
  EXPECT_EQ(lines[0]["report"], "/runs/x/report.json");
  EXPECT_TRUE(lines[0]["train_loss"].is_null());
  const auto message = lines[0]["message"].get<std::string>();
  EXPECT_TRUE(message.starts_with("completed: 1000 steps, ")) << message;
  EXPECT_TRUE(message.ends_with("\nparameters_sha256 abc\nreport /runs/x/report.json")) << message;
  EXPECT_LT(lines[0].dump().size(), 4096U) << "a container runtime cuts a line after 16 KiB";
}

} // namespace
} // namespace dlrun::cli
