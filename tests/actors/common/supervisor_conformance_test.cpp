// What the supervisor promises, one row a promise. Children are up at the beginning of a row unless
// it says `from_start`.
#include "tests/actors/common/supervisor_script.hpp"

#include <gtest/gtest.h>

namespace dlrun::supervision::testing {
namespace {

struct row {
  std::string name;
  std::string options;
  std::string children;
  std::vector<step> script;
  bool from_start = false;

  friend void PrintTo(const row& r, std::ostream* out) { *out << r.options << " {" << r.children << "}"; }
};

constexpr bool from_start = true;

// One row, two lines.
// clang-format off

const std::vector<row> restart_rows{
    {"restarts_a_permanent_child_that_failed", "", "a b c",
     {{"b ends", "start b#2"}}},
    {"leaves_a_temporary_child_that_failed", "", "a:temporary b",
     {{"a ends", ""}}},
    {"restarts_two_children_side_by_side", "5/1000", "a b",
     {{"b ends", "start b#2"}, {"a ends", "start a#2"}, {"a up", ""}, {"b up", ""}}},
    {"restarts_the_only_child", "", "a",
     {{"a ends", "start a#2"}, {"a up", ""}}},
};

const std::vector<row> number_rows{
    {"starts_a_child_that_is_added", "", "a",
     {{"add b", "start b#1"}, {"b up", ""}, {"b ends", "start b#2"}}},
    {"a_child_that_is_added_during_the_start_waits_for_its_turn", "", "a b",
     {{"start", "start a#1"}, {"add c", ""}, {"a up", "start b#1"}, {"b up", "start c#1"}}, from_start},
    {"an_added_child_that_does_not_start_is_tried_again", "2/1000", "a",
     {{"add b", "start b#1"}, {"b nostart", "start b#2"}, {"b up", ""}}},
    {"a_child_that_is_dismissed_is_not_started_again", "", "a b",
     {{"dismiss b", "dismiss b#1"}, {"b ends", ""}, {"a ends", "start a#2"}}},
    {"several_leave_at_the_same_time", "", "a b c",
     {{"dismiss b", "dismiss b#1"}, {"dismiss c", "dismiss c#1"}, {"b ends", ""}, {"c ends", ""}}},
    {"a_dismissed_child_that_stays_is_killed", "", "a b",
     {{"dismiss b", "dismiss b#1"}, {"+499", ""}, {"+1", "kill b#1"}, {"b ends", ""}}},
    {"a_dismissed_child_that_waits_for_its_restart_stays_away", "delay=100-400", "a b",
     {{"b ends", ""}, {"dismiss b", ""}, {"+500", ""}}},
    {"a_child_that_is_added_again_while_it_leaves_starts_when_it_is_gone", "", "a b",
     {{"dismiss b", "dismiss b#1"}, {"add b", ""}, {"b ends", "start b#2"}}},
    {"a_dismissed_child_that_failed_uses_no_restart", "0/1000", "a b",
     {{"dismiss b", "dismiss b#1"}, {"b ends", ""}, {"add b", "start b#2"}, {"b up", ""}}},
    {"a_shutdown_ends_those_that_are_leaving_in_their_turn", "", "a b c",
     {{"dismiss b", "dismiss b#1"}, {"shutdown", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}},
};

const std::vector<row> intensity_rows{
    {"intensity_0_gives_up_at_the_first_failure", "0/5000", "a b",
     {{"a ends", "terminate b#1"}, {"b ends", "escalate"}}},
    {"intensity_1_allows_one_restart", "1/5000", "a",
     {{"a ends", "start a#2"}, {"a up", ""}, {"a ends", "escalate"}}},
    {"intensity_counts_all_children_together", "2/5000", "a b c",
     {{"a ends", "start a#2"}, {"b ends", "start b#2"}, {"c ends", "terminate b#2"}, {"b ends", "terminate a#2"}, {"a ends", "escalate"}}},
    {"a_restart_exactly_one_period_ago_still_counts", "1/5000", "a",
     {{"a ends", "start a#2"}, {"a up", ""}, {"~5000", ""}, {"a ends", "escalate"}}},
    {"a_restart_longer_ago_than_the_period_does_not_count", "1/5000", "a",
     {{"a ends", "start a#2"}, {"a up", ""}, {"~5001", ""}, {"a ends", "start a#3"}}},
    {"the_period_slides", "2/1000", "a",
     {{"a ends", "start a#2"}, {"a up", ""}, {"~600", ""}, {"a ends", "start a#3"}, {"a up", ""}, {"~600", ""}, {"a ends", "start a#4"}, {"a up", ""}, {"~300", ""}, {"a ends", "escalate"}}},
    {"an_end_that_is_not_restarted_does_not_count", "0/1000", "t:temporary",
     {{"t ends", ""}}},
    {"an_end_that_is_somebody_elses_fault_does_not_count", "1/1000", "a",
     {{"a excused", "start a#2"}, {"a up", ""}, {"a excused", "start a#3"}, {"a up", ""}, {"a ends", "start a#4"}, {"a up", ""}, {"a ends", "escalate"}}},
    {"nothing_happens_after_giving_up", "0/1000", "a",
     {{"a ends", "escalate"}, {"a up", ""}, {"shutdown", ""}, {"+9000", ""}}},
    {"giving_up_stops_the_rest_in_reverse_order", "0/1000", "a b c d",
     {{"b ends", "terminate d#1"}, {"d ends", "terminate c#1"}, {"c ends", "terminate a#1"}, {"a ends", "escalate"}}},
    {"giving_up_kills_those_that_do_not_stop", "0/1000", "a b:timeout=300",
     {{"a ends", "terminate b#1"}, {"+300", "kill b#1"}, {"b ends", "escalate"}}},
    {"a_failed_restart_counts_as_a_restart", "2/1000", "a",
     {{"a ends", "start a#2"}, {"a nostart", "start a#3"}, {"a nostart", "escalate"}}},
};

const std::vector<row> start_rows{
    {"children_start_in_order_each_when_the_one_before_is_up", "", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b up", "start c#1"}, {"c up", ""}}, from_start},
    {"a_supervisor_without_children_is_stopped_at_once", "", "",
     {{"start", ""}, {"shutdown", "stopped"}}, from_start},
    {"a_first_start_that_fails_ends_the_supervisor", "9/1000", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b nostart", "terminate a#1"}, {"a ends", "escalate"}}, from_start},
    {"a_first_start_that_fails_ends_it_also_for_a_temporary_child", "9/1000", "a:temporary",
     {{"start", "start a#1"}, {"a nostart", "escalate"}}, from_start},
    {"an_end_before_being_up_is_a_failed_start", "9/1000", "a b",
     {{"start", "start a#1"}, {"a ends", "escalate"}}, from_start},
    {"an_end_of_who_was_up_unheard_is_no_failed_start", "1/1000", "a b",
     {{"start", "start a#1"}, {"a ran", "start a#2, start b#1"}, {"a ran", "terminate b#1"}, {"b ends", "escalate"}}, from_start},
    {"a_temporary_child_that_was_up_unheard_keeps_nobody_waiting", "", "a:temporary b",
     {{"start", "start a#1"}, {"a ran", "start b#1"}, {"b up", ""}}, from_start},
    {"an_end_while_others_still_start_is_restarted_at_once", "9/1000", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"a ends", "start a#2"}, {"b up", "start c#1"}, {"c up", ""}, {"a up", ""}}, from_start},
    {"a_failed_restart_is_tried_again", "5/1000", "a b",
     {{"a ends", "start a#2"}, {"a nostart", "start a#3"}, {"a up", ""}}},
    {"a_failed_start_has_its_reason", "", "a b",
     {{"start", "start a#1"}, {"a nostart", "escalate"}}, from_start},
};

const std::vector<row> shutdown_rows{
    {"shutdown_stops_in_reverse_order", "", "a b c",
     {{"shutdown", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}},
    {"shutdown_before_the_start", "", "a",
     {{"shutdown", "stopped"}, {"start", ""}}, from_start},
    {"shutdown_twice_is_one_shutdown", "", "a",
     {{"shutdown", "terminate a#1"}, {"shutdown", ""}, {"a ends", "stopped"}}},
    {"shutdown_passes_over_ended_children", "", "a t:temporary c",
     {{"t ends", ""}, {"shutdown", "terminate c#1"}, {"c ends", "terminate a#1"}, {"a ends", "stopped"}}},
    {"an_end_during_shutdown_restarts_nothing", "", "a b c",
     {{"shutdown", "terminate c#1"}, {"a ends", ""}, {"c ends", "terminate b#1"}, {"b ends", "stopped"}}},
    {"shutdown_while_starting_stops_the_one_that_starts", "", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"shutdown", "terminate b#1"}, {"b up", ""}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}, from_start},
    {"shutdown_while_starting_and_that_start_fails", "", "a b",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"shutdown", "terminate b#1"}, {"b nostart", "terminate a#1"}, {"a ends", "stopped"}}, from_start},
    {"shutdown_while_starting_and_that_one_was_up_unheard", "", "a b c",
     {{"start", "start a#1"}, {"a ran", "start a#2, start b#1"}, {"shutdown", "terminate b#1"}, {"a ran", ""}, {"b ran", "stopped"}}, from_start},
    {"shutdown_while_one_child_restarts", "", "a b",
     {{"a ends", "start a#2"}, {"shutdown", "terminate b#1"}, {"a up", ""}, {"b ends", "terminate a#2"}, {"a ends", "stopped"}}},
    {"a_late_child_is_killed", "", "a:timeout=300",
     {{"shutdown", "terminate a#1"}, {"+299", ""}, {"+1", "kill a#1"}, {"+9000", ""}, {"a ends", "stopped"}}},
    {"time_outs_run_one_after_the_other", "", "a:timeout=300 b:timeout=300",
     {{"shutdown", "terminate b#1"}, {"+300", "kill b#1"}, {"b ends", "terminate a#1"}, {"+299", ""}, {"+1", "kill a#1"}, {"a ends", "stopped"}}},
    {"a_time_out_of_0_kills_at_the_next_tick", "", "a:timeout=0",
     {{"shutdown", "terminate a#1"}, {"+0", "kill a#1"}}},
};

const std::vector<row> late_event_rows{
    {"a_late_end_of_an_older_start_is_ignored", "5/1000", "a",
     {{"a ends", "start a#2"}, {"a#1 ends", ""}, {"a up", ""}, {"a#1 ends", ""}}},
    {"a_late_up_of_an_older_start_is_ignored", "5/1000", "a b",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b up", ""}, {"a ends", "start a#2"}, {"a#1 up", ""}}, from_start},
    {"a_late_failed_start_of_an_older_start_is_ignored", "5/1000", "a",
     {{"a ends", "start a#2"}, {"a#1 nostart", ""}}},
    {"an_event_of_a_start_that_never_was_is_ignored", "", "a",
     {{"a#7 ends", ""}, {"a#0 up", ""}}},
    {"an_event_of_an_unknown_child_is_ignored", "", "a",
     {{"z#1 ends", ""}}},
    {"the_same_end_twice_is_one_end", "1/1000", "t:temporary",
     {{"t ends", ""}, {"t ends", ""}}},
    {"up_while_being_stopped_changes_nothing", "", "a b",
     {{"shutdown", "terminate b#1"}, {"b up", ""}, {"b ends", "terminate a#1"}}},
    {"being_up_twice_is_being_up", "", "a b",
     {{"a up", ""}, {"b up", ""}}},
    {"a_failed_start_of_a_child_that_is_up_is_ignored", "", "a",
     {{"a nostart", ""}}},
};

const std::vector<row> delay_rows{
    {"a_delayed_restart_waits", "9/60000 delay=100-400", "a",
     {{"a ends", ""}, {"+99", ""}, {"+1", "start a#2"}}},
    {"the_delay_doubles_up_to_its_maximum", "9/60000 delay=100-300", "a",
     {{"a ends", ""}, {"+100", "start a#2"}, {"a up", ""}, {"a ends", ""}, {"+200", "start a#3"}, {"a nostart", ""}, {"+299", ""}, {"+1", "start a#4"}}},
    {"a_child_that_had_settled_is_not_delayed_and_the_next_delay_is_the_first", "9/1000 delay=100-400", "a",
     {{"a ends", ""}, {"+100", "start a#2"}, {"a up", ""}, {"a breaks", "start a#3"}, {"a up", ""}, {"a ends", ""}, {"+100", "start a#4"}}},
    {"a_failure_that_repeats_reaches_the_intensity_through_its_delays", "3/1000 delay=100-250", "a",
     {{"a ends", ""}, {"+100", "start a#2"}, {"a nostart", ""}, {"+200", "start a#3"}, {"a nostart", ""}, {"+250", "start a#4"}, {"a nostart", "escalate"}}},
    {"shutdown_during_a_delay", "9/1000 delay=100-400", "a b",
     {{"a ends", ""}, {"shutdown", "terminate b#1"}, {"b ends", "stopped"}, {"+100", ""}}},
    {"other_children_are_not_delayed", "9/1000 delay=100-400", "a b",
     {{"a ends", ""}, {"+50", ""}, {"b ends", ""}, {"+50", "start a#2"}, {"+50", "start b#2"}}},
};

// clang-format on

std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const auto& some :
       {restart_rows, number_rows, intensity_rows, start_rows, shutdown_rows, late_event_rows, delay_rows})
    rows.insert(rows.end(), some.begin(), some.end());
  return rows;
}

class supervisor_conformance : public ::testing::TestWithParam<row> {};

TEST_P(supervisor_conformance, holds) {
  const auto& promised = GetParam();
  player play(promised.options, promised.children);
  if (!promised.from_start) play.bring_all_up();
  int line = 0;
  for (const auto& [event, expected] : promised.script)
    ASSERT_EQ(play.play(event), expected) << "after step " << ++line << ": " << event;
}

INSTANTIATE_TEST_SUITE_P(table, supervisor_conformance, ::testing::ValuesIn(all_rows()),
                         [](const auto& row) { return row.param.name; });

TEST(supervisor_conformance_table, has_at_least_50_rows) { EXPECT_GE(all_rows().size(), 50U); }

} // namespace
} // namespace dlrun::supervision::testing
