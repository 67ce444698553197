#include "cli/attached_run.hpp"

#include "actors/agent/event_json.hpp"
#include "tests/data/files.hpp"

#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr protocol::time_point root_began{std::chrono::seconds(1000)};
constexpr protocol::time_point looked_at{std::chrono::seconds(1500)};

/// A line for each call.
class told_display final : public runtime::run_observer {
public:
  explicit told_display(std::vector<std::string>& lines)
      : lines_{lines} {}
  void update(const agent::run_snapshot& now, protocol::time_point at) override {
    lines_.push_back(fmt::format("step {} at {}", now.step, protocol::to_seconds(at.time_since_epoch())));
  }
  void event(const protocol::job_event& event) override { lines_.push_back(event.event); }
  void summary(const dlrun::report& report, const std::string& path) override {
    lines_.push_back(fmt::format("{} in {}", to_string(report.status), path));
  }

private:
  std::vector<std::string>& lines_;
};

class attached_run_test : public testing::Test {
protected:
  attached_run attach() {
    return {folder.path(), [this](protocol::time_point when) {
              started.push_back(when);
              return std::make_unique<told_display>(lines);
            }};
  }
  void tell(const std::string& event) const {
    std::ofstream{folder.path() / "events.jsonl", std::ios::app}
        << agent::to_json_line({.event = event, .role = {}, .incarnation = {}, .text = ""});
  }
  static std::string at_step(std::uint64_t step, std::uint64_t steps = 100) {
    agent::run_snapshot snapshot;
    snapshot.step = step;
    snapshot.steps = steps;
    snapshot.started_us = 1'000'000'000;
    return agent::to_json(snapshot);
  }

  test::temporary_folder folder;
  std::vector<std::string> lines;
  std::vector<protocol::time_point> started;
};

TEST_F(attached_run_test, shows_what_happens_from_now_on_in_its_order) {
  tell("of before");
  auto run = attach();
  run.look(at_step(3), looked_at);
  EXPECT_THAT(lines, ElementsAre("step 3 at 1500"));
  tell("rewind");
  tell("evaluated");
  run.look(at_step(4), looked_at);
  EXPECT_THAT(lines, ElementsAre("step 3 at 1500", "rewind", "evaluated", "step 4 at 1500"));
}

TEST_F(attached_run_test, counts_the_time_from_the_start_of_the_run) {
  auto run = attach();
  run.look(at_step(3), looked_at);
  run.look(at_step(4), looked_at);
  EXPECT_THAT(started, ElementsAre(root_began));
}

TEST_F(attached_run_test, shows_nothing_of_a_run_that_has_not_told_how_long_it_is) {
  auto run = attach();
  tell("host-joined");
  run.look(at_step(0, 0), looked_at);
  run.look("", looked_at);
  EXPECT_THAT(lines, IsEmpty());
  run.look(at_step(0), looked_at);
  EXPECT_THAT(lines, ElementsAre("host-joined", "step 0 at 1500")) << "and then all of it";
}

TEST_F(attached_run_test, shows_events_while_the_root_does_not_answer) {
  auto run = attach();
  run.look(at_step(3), looked_at);
  tell("role-exited");
  run.look("", looked_at);
  EXPECT_THAT(lines, ElementsAre("step 3 at 1500", "role-exited"));
}

TEST_F(attached_run_test, passes_over_an_event_that_is_damaged) {
  auto run = attach();
  run.look(at_step(3), looked_at);
  std::ofstream{folder.path() / "events.jsonl", std::ios::app} << "{\"event\":5}\n\n";
  tell("rewind");
  run.look("", looked_at);
  EXPECT_THAT(lines, ElementsAre("step 3 at 1500", "rewind"));
}

TEST_F(attached_run_test, ends_with_the_report_also_when_the_run_was_over_before) {
  dlrun::report report;
  report.status = run_status::interrupted;
  const auto path = folder.path() / "report.json";
  ASSERT_TRUE(dlrun::write_report(path, report));
  auto run = attach();
  run.look("", looked_at);
  const auto ended = run.end(looked_at);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->status, run_status::interrupted);
  EXPECT_THAT(lines, ElementsAre("interrupted in " + path.string()));
}

TEST_F(attached_run_test, tells_the_way_out_where_there_is_no_report) {
  auto run = attach();
  const auto ended = run.end(looked_at);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::bad_usage);
  EXPECT_THAT(ended.error().message, HasSubstr("dlrun resume " + folder.path().string()));
}

} // namespace
} // namespace dlrun::cli
