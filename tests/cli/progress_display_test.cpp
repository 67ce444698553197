#include "cli/progress_display.hpp"

#include <bit>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr protocol::time_point begin{seconds(1000)};

/// A display of steps of 100 records, and what it writes.
class progress_display_test : public testing::Test {
protected:
  ~progress_display_test() override {
    std::fclose(out);
    std::free(text);
  }
  progress_display make(bool terminal) {
    return {out, terminal ? [this] { return columns; } : terminal_columns{}, 100, begin};
  }
  /// What was written since the last call.
  std::string shown() {
    std::fflush(out);
    const auto from = std::exchange(read, size);
    return {text + from, size - from};
  }
  static agent::run_snapshot at_step(std::uint64_t step, std::uint64_t steps = 1000) {
    agent::run_snapshot now;
    now.step = step;
    now.steps = steps;
    return now;
  }
  /// Shows `step` after so many milliseconds. @returns the line.
  std::string update(progress_display& display, int ms, std::uint64_t step) {
    display.update(at_step(step), begin + milliseconds(ms));
    return shown();
  }

  std::size_t columns = 80;
  char* text = nullptr;
  std::size_t size = 0;
  std::size_t read = 0;
  std::FILE* out = ::open_memstream(&text, &size);
};

TEST_F(progress_display_test, without_a_terminal_there_is_a_line_at_most_every_two_seconds) {
  auto display = make(false);
  EXPECT_EQ(update(display, 100, 5), "    0.1 s  step 5/1000\n");
  EXPECT_THAT(update(display, 2000, 50), IsEmpty());
  EXPECT_THAT(update(display, 2100, 55), StartsWith("    2.1 s  step 55/1000"));
  EXPECT_THAT(update(display, 3000, 80), IsEmpty());
}

TEST_F(progress_display_test, without_a_terminal_there_is_no_line_while_nothing_moves) {
  auto display = make(false);
  EXPECT_THAT(update(display, 100, 0), IsEmpty());
  EXPECT_THAT(update(display, 3000, 0), IsEmpty());
  EXPECT_THAT(update(display, 3100, 5), Not(IsEmpty()));
  EXPECT_THAT(update(display, 9000, 5), IsEmpty());
}

TEST_F(progress_display_test, going_back_is_movement) {
  auto display = make(false);
  update(display, 100, 500);
  EXPECT_THAT(update(display, 3000, 200), HasSubstr("step 200/1000"));
}

TEST_F(progress_display_test, a_terminal_has_one_line_that_is_drawn_again) {
  auto display = make(true);
  EXPECT_EQ(update(display, 0, 0), "\r[....................] step 0/1000");
  EXPECT_EQ(update(display, 1, 0), "\r[....................] step 0/1000");
  EXPECT_THAT(update(display, 2, 500), StartsWith("\r[##########..........] step 500/1000"));
  EXPECT_THAT(update(display, 3, 1000), StartsWith("\r[####################] step 1000/1000"));
}

TEST_F(progress_display_test, nothing_is_shown_before_the_length_of_the_job_is_known) {
  auto display = make(true);
  display.update(at_step(0, 0), begin);
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(progress_display_test, the_loss_of_the_newest_step_is_shown_where_it_is_known) {
  auto display = make(true);
  auto now = at_step(3);
  now.train = {.step_loss = 0.51239};
  display.update(now, begin);
  EXPECT_THAT(shown(), EndsWith("step 3/1000  loss 0.5124"));
}

TEST_F(progress_display_test, metrics_are_shown_as_far_as_a_terminals_line_has_room) {
  auto now = at_step(3);
  now.train = {.step_loss = 0.5, .metrics = {{"accuracy", 0.25}, {"precision", 0.125}, {"recall", 1}}};
  auto display = make(true);
  display.update(now, begin);
  EXPECT_THAT(shown(), EndsWith("step 3/1000  loss 0.5000  accuracy 0.2500"));
  auto plain = make(false);
  plain.update(now, begin);
  EXPECT_THAT(shown(), EndsWith("loss 0.5000  accuracy 0.2500  precision 0.1250  recall 1.0000\n"));
}

TEST_F(progress_display_test, a_narrow_terminal_has_lines_that_fit_its_width_at_that_moment) {
  auto now = at_step(30);
  now.train = {.step_loss = 0.5, .metrics = {{"accuracy", 0.25}}};
  auto display = make(true);
  display.update(at_step(20), begin);
  shown();
  for (columns = 120; columns > 0; --columns) {
    display.update(now, begin + seconds(1));
    const auto line = shown();
    EXPECT_THAT(line, StartsWith("\r"));
    EXPECT_LT(line.size() - 1, std::max<std::size_t>(columns, 1)) << line;
  }
  columns = 60;
  display.update(now, begin + seconds(1));
  EXPECT_EQ(shown(), "\rstep 30/1000  loss 0.5000  1000 samples/s  ETA 97 s");
  columns = 30;
  display.update(now, begin + seconds(1));
  EXPECT_EQ(shown(), "\rstep 30/1000  loss 0.5000    ") << "over what stood there";
}

TEST_F(progress_display_test, nothing_but_carriage_returns_and_text_goes_to_a_terminal) {
  auto display = make(true);
  auto said = update(display, 0, 10);
  display.event({});
  display.summary({}, "/run/report.json");
  said += shown();
  EXPECT_THAT(said, Not(HasSubstr("\033")));
}

TEST_F(progress_display_test, speed_and_time_left_follow_from_the_steps) {
  auto display = make(true);
  EXPECT_THAT(update(display, 0, 10), Not(HasSubstr("samples/s"))) << "not known yet";
  EXPECT_THAT(update(display, 1000, 20), EndsWith("  1000 samples/s  ETA 98 s"));
  EXPECT_THAT(update(display, 2000, 30), EndsWith("  1000 samples/s  ETA 97 s"));
  EXPECT_THAT(update(display, 3000, 630), HasSubstr("  30.5k samples/s"));
}

TEST_F(progress_display_test, a_run_that_is_resumed_is_as_fast_as_it_is_now) {
  auto display = make(true);
  update(display, 0, 0);
  update(display, 100, 900);
  EXPECT_THAT(update(display, 1100, 910), HasSubstr("  1000 samples/s  ETA 9 s"));
}

TEST_F(progress_display_test, going_back_changes_no_speed) {
  auto display = make(true);
  update(display, 0, 10);
  update(display, 1000, 20);
  EXPECT_THAT(update(display, 1100, 5), HasSubstr("  1000 samples/s"));
  EXPECT_THAT(update(display, 2100, 15), HasSubstr("  1000 samples/s"));
}

TEST_F(progress_display_test, steps_longer_than_the_display_looks_are_measured_whole) {
  auto display = make(true);
  std::string last;
  for (int ms = 0; ms <= 20'000; ms += 100)
    last = update(display, ms, static_cast<std::uint64_t>(1 + ms / 4000));
  EXPECT_THAT(last, HasSubstr("  25 samples/s  ETA 3976 s"));
}

TEST_F(progress_display_test, while_nothing_comes_the_speed_falls_and_no_time_is_made_up) {
  auto display = make(true);
  update(display, 0, 10);
  update(display, 1000, 20);
  std::string last;
  for (int ms = 1100; ms <= 101'000; ms += 100) last = update(display, ms, 20);
  EXPECT_THAT(last, EndsWith("  1 samples/s  ETA 98000 s"));
}

TEST_F(progress_display_test, an_event_has_a_line_of_its_own) {
  for (const bool terminal : {false, true}) {
    auto display = make(terminal);
    update(display, 0, 10);
    protocol::job_event event;
    event.event = "role-exited";
    event.at_us = 1'001'500'000;
    event.text = "worker 1: killed by signal 9 (SIGKILL)";
    display.event(event);
    EXPECT_EQ(shown(), std::string{terminal ? "\r" + std::string(35, ' ') + "\r" : ""} +
                           "    1.5 s  role-exited: worker 1: killed by signal 9 (SIGKILL)\n");
  }
}

dlrun::report full_report() {
  dlrun::report report;
  report.status = dlrun::run_status::completed;
  report.steps = 1000;
  report.samples_committed = 100'000;
  report.wall_seconds = 12.34;
  report.samples_per_second = 8103;
  report.train_loss = 0.25;
  report.train_metrics = {{"accuracy", 0.5}, {"top5", 0.875}};
  report.parameters_sha256 = "abc";
  return report;
}

TEST_F(progress_display_test, the_summary_tells_what_came_of_it) {
  auto display = make(true);
  update(display, 0, 1000);
  auto report = full_report();
  report.validation = dlrun::validation_metrics{.loss = 0.125, .metrics = {{"accuracy", 0.75}}};
  report.best = {500, "accuracy", 0.8125};
  report.recoveries.resize(2);
  report.steps_redone = 3;
  display.summary(report, "/run/report.json");
  EXPECT_EQ(shown(),
            "\r                                     \rcompleted: 1000 steps, 100000 samples (0 missing, 0 "
            "duplicated), 2 recoveries, 3 steps "
            "redone, 12.3 s, 8103 samples/s\n"
            "train loss 0.2500  accuracy 0.5000  top5 0.8750  |  validation loss 0.1250  accuracy 0.7500\n"
            "best accuracy 0.8125 at step 500\n"
            "parameters_sha256 abc\n"
            "report /run/report.json\n");
}

TEST_F(progress_display_test, the_summary_says_where_bits_are_not_promised) {
  auto report = full_report();
  report.deterministic = false;
  make(false).summary(report, "/run/report.json");
  EXPECT_THAT(shown(), HasSubstr("parameters_sha256 abc (cluster.determinism is relaxed"));
}

TEST_F(progress_display_test, the_summary_of_a_run_that_failed_shows_no_result) {
  auto display = make(false);
  auto report = full_report();
  report.status = dlrun::run_status::failed;
  report.samples_missing = 7;
  display.summary(report, "/run/report.json");
  const auto said = shown();
  EXPECT_THAT(said, StartsWith("failed: 1000 steps, 100000 samples (7 missing, 0 duplicated)"));
  EXPECT_THAT(said, Not(HasSubstr("parameters_sha256")));
  EXPECT_THAT(said, Not(HasSubstr("train loss")));
  EXPECT_THAT(said, EndsWith("\nreport /run/report.json\n"));
}

} // namespace
} // namespace dlrun::cli
