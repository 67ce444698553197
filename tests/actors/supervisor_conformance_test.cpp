// What the supervisor promises, one row a promise. Children are up at the beginning of a row unless
// it says `from_start`.
#include "tests/actors/supervisor_script.hpp"

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
    // one_for_one: restart type x exit reason
    {"one_for_one_restarts_a_permanent_child_that_failed", "one_for_one", "a b c",
     {{"b fails", "start b#2"}}},
    {"one_for_one_restarts_a_permanent_child_that_exited_normally", "one_for_one", "a b",
     {{"a exits", "start a#2"}}},
    {"one_for_one_restarts_a_permanent_child_that_was_shut_down", "one_for_one", "a b",
     {{"a ends", "start a#2"}}},
    {"one_for_one_restarts_a_transient_child_that_failed", "one_for_one", "a:transient b",
     {{"a fails", "start a#2"}}},
    {"one_for_one_leaves_a_transient_child_that_exited_normally", "one_for_one", "a:transient b",
     {{"a exits", ""}}},
    {"one_for_one_leaves_a_transient_child_that_was_shut_down", "one_for_one", "a:transient b",
     {{"a ends", ""}}},
    {"one_for_one_leaves_a_temporary_child_that_failed", "one_for_one", "a:temporary b",
     {{"a fails", ""}}},
    {"one_for_one_leaves_a_temporary_child_that_exited_normally", "one_for_one", "a:temporary b",
     {{"a exits", ""}}},
    {"one_for_one_restarts_two_children_side_by_side", "one_for_one 5/1000", "a b",
     {{"b fails", "start b#2"}, {"a fails", "start a#2"}, {"a up", ""}, {"b up", ""}}},
    {"one_for_one_restarts_the_only_child", "one_for_one", "a",
     {{"a fails", "start a#2"}, {"a up", ""}}},
    // one_for_all: restart type x exit reason x position
    {"one_for_all_first_child_failed", "one_for_all", "a b c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}, {"c up", ""}}},
    {"one_for_all_middle_child_failed", "one_for_all", "a b c",
     {{"b fails", "terminate c#1"}, {"c ends", "terminate a#1"}, {"a ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}}},
    {"one_for_all_last_child_failed", "one_for_all", "a b c",
     {{"c fails", "terminate b#1"}, {"b ends", "terminate a#1"}, {"a ends", "start a#2"}}},
    {"one_for_all_permanent_child_exited_normally", "one_for_all", "a b",
     {{"a exits", "terminate b#1"}, {"b ends", "start a#2"}}},
    {"one_for_all_transient_child_failed", "one_for_all", "a:transient b",
     {{"a fails", "terminate b#1"}, {"b ends", "start a#2"}}},
    {"one_for_all_transient_child_exited_normally", "one_for_all", "a:transient b",
     {{"a exits", ""}}},
    {"one_for_all_temporary_child_failed", "one_for_all", "a:temporary b",
     {{"a fails", ""}}},
    {"one_for_all_forgets_a_temporary_sibling", "one_for_all", "a t:temporary b",
     {{"a fails", "terminate b#1"}, {"b ends", "terminate t#1"}, {"t ends", "start a#2"}, {"a up", "start b#2"}, {"b up", ""}, {"t up", ""}}},
    {"one_for_all_starts_a_transient_sibling_that_had_ended", "one_for_all", "a t:transient",
     {{"t exits", ""}, {"a fails", "start a#2"}, {"a up", "start t#2"}}},
    {"one_for_all_counts_siblings_that_failed_together_once", "one_for_all 1/1000", "a b c",
     {{"a fails", "terminate c#1"}, {"b fails", ""}, {"c ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}}},
    {"one_for_all_sibling_fails_while_it_is_being_stopped", "one_for_all 1/1000", "a b",
     {{"a fails", "terminate b#1"}, {"b fails", "start a#2"}}},
    {"one_for_all_alone", "one_for_all", "a",
     {{"a fails", "start a#2"}}},
    {"one_for_all_kills_those_that_are_killed", "one_for_all", "a b:kill",
     {{"a fails", "kill b#1"}, {"b fails", "start a#2"}}},
    // rest_for_one: position x restart type
    {"rest_for_one_first_child_failed", "rest_for_one", "a b c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}}},
    {"rest_for_one_middle_child_failed", "rest_for_one", "a b c",
     {{"b fails", "terminate c#1"}, {"c ends", "start b#2"}, {"b up", "start c#2"}}},
    {"rest_for_one_last_child_failed", "rest_for_one", "a b c",
     {{"c fails", "start c#2"}}},
    {"rest_for_one_transient_child_exited_normally", "rest_for_one", "a:transient b",
     {{"a exits", ""}}},
    {"rest_for_one_transient_child_failed", "rest_for_one", "a:transient b",
     {{"a fails", "terminate b#1"}, {"b ends", "start a#2"}}},
    {"rest_for_one_temporary_child_failed", "rest_for_one", "a:temporary b",
     {{"a fails", ""}}},
    {"rest_for_one_forgets_a_temporary_child_behind", "rest_for_one", "a t:temporary c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate t#1"}, {"t ends", "start a#2"}, {"a up", "start c#2"}}},
    {"rest_for_one_keeps_a_temporary_child_before", "rest_for_one", "t:temporary b",
     {{"b fails", "start b#2"}}},
    {"rest_for_one_leaves_an_ended_transient_child_before", "rest_for_one", "t:transient b",
     {{"t exits", ""}, {"b fails", "start b#2"}, {"b up", ""}}},
    {"rest_for_one_widens_when_an_earlier_child_fails_too", "rest_for_one 5/1000", "a b c",
     {{"b fails", "terminate c#1"}, {"a fails", ""}, {"c ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}}},
    {"rest_for_one_begins_anew_when_a_restarted_child_fails_again", "rest_for_one 5/1000", "a b c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"a fails", "terminate b#2"}, {"b ends", "start a#3"}, {"a up", "start b#3"}, {"b up", "start c#2"}}},
};

const std::vector<row> intensity_rows{
    {"intensity_0_gives_up_at_the_first_failure", "one_for_one 0/5000", "a b",
     {{"a fails", "terminate b#1"}, {"b ends", "escalate"}}},
    {"intensity_1_allows_one_restart", "one_for_one 1/5000", "a",
     {{"a fails", "start a#2"}, {"a up", ""}, {"a fails", "escalate"}}},
    {"intensity_counts_all_children_together", "one_for_one 2/5000", "a b c",
     {{"a fails", "start a#2"}, {"b fails", "start b#2"}, {"c fails", "terminate b#2"}, {"b ends", "terminate a#2"}, {"a ends", "escalate"}}},
    {"a_restart_exactly_one_period_ago_still_counts", "one_for_one 1/5000", "a",
     {{"a fails", "start a#2"}, {"a up", ""}, {"~5000", ""}, {"a fails", "escalate"}}},
    {"a_restart_longer_ago_than_the_period_does_not_count", "one_for_one 1/5000", "a",
     {{"a fails", "start a#2"}, {"a up", ""}, {"~5001", ""}, {"a fails", "start a#3"}}},
    {"the_period_slides", "one_for_one 2/1000", "a",
     {{"a fails", "start a#2"}, {"a up", ""}, {"~600", ""}, {"a fails", "start a#3"}, {"a up", ""}, {"~600", ""}, {"a fails", "start a#4"}, {"a up", ""}, {"~300", ""}, {"a fails", "escalate"}}},
    {"a_group_restart_counts_once", "one_for_all 1/1000", "a b c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#2"}, {"c up", ""}}},
    {"an_end_that_is_not_restarted_does_not_count", "one_for_one 0/1000", "t:transient u:temporary",
     {{"t exits", ""}, {"u fails", ""}}},
    {"giving_up_stops_the_rest_in_reverse_order", "one_for_one 0/1000", "a b c d",
     {{"b fails", "terminate d#1"}, {"d ends", "terminate c#1"}, {"c ends", "terminate a#1"}, {"a ends", "escalate"}}},
    {"giving_up_kills_those_that_do_not_stop", "one_for_one 0/1000", "a b:timeout=300",
     {{"a fails", "terminate b#1"}, {"+300", "kill b#1"}, {"b fails", "escalate"}}},
    {"giving_up_in_the_middle_of_a_group_restart", "one_for_all 1/1000", "a b c",
     {{"a fails", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"a fails", "terminate b#2"}, {"b ends", "escalate"}}},
    {"nothing_happens_after_giving_up", "one_for_one 0/1000", "a",
     {{"a fails", "escalate"}, {"a up", ""}, {"shutdown", ""}, {"+9000", ""}, {"add b", "error"}}},
    {"a_failed_restart_counts_as_a_restart", "one_for_one 2/1000", "a",
     {{"a fails", "start a#2"}, {"a nostart", "start a#3"}, {"a nostart", "escalate"}}},
    {"restarts_of_different_strategies_count_alike", "rest_for_one 1/1000", "a b",
     {{"b fails", "start b#2"}, {"b up", ""}, {"a fails", "terminate b#2"}, {"b ends", "escalate"}}},
};

const std::vector<row> start_rows{
    {"children_start_in_order_each_when_the_one_before_is_up", "one_for_one", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b up", "start c#1"}, {"c up", "started"}}, from_start},
    {"a_supervisor_without_children_is_started_at_once", "one_for_one", "",
     {{"start", "started"}, {"shutdown", "stopped"}}, from_start},
    {"a_first_start_that_fails_ends_the_supervisor", "one_for_one 9/1000", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b nostart", "terminate a#1"}, {"a ends", "escalate"}}, from_start},
    {"a_first_start_that_fails_ends_it_also_for_a_temporary_child", "one_for_one 9/1000", "a:temporary",
     {{"start", "start a#1"}, {"a nostart", "escalate"}}, from_start},
    {"an_end_before_being_up_is_a_failed_start", "one_for_one 9/1000", "a b",
     {{"start", "start a#1"}, {"a fails", "escalate"}}, from_start},
    {"an_end_while_others_still_start_is_restarted_at_once", "one_for_one 9/1000", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"a fails", "start a#2"}, {"b up", "start c#1"}, {"c up", "started"}, {"a up", ""}}, from_start},
    {"a_group_failure_while_others_still_start_begins_anew", "one_for_all 9/1000", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"a fails", "terminate b#1"}, {"b ends", "start a#2"}, {"a up", "start b#2"}, {"b up", "start c#1"}, {"c up", "started"}}, from_start},
    {"a_failed_restart_is_tried_again", "one_for_one 5/1000", "a b",
     {{"a fails", "start a#2"}, {"a nostart", "start a#3"}, {"a up", ""}}},
    {"a_failed_restart_of_a_transient_child_is_tried_again", "one_for_one 5/1000", "a:transient",
     {{"a fails", "start a#2"}, {"a exits", "start a#3"}}},
    {"a_failed_group_restart_stops_those_already_up", "one_for_all 5/1000", "a b",
     {{"b fails", "terminate a#1"}, {"a ends", "start a#2"}, {"a up", "start b#2"}, {"b nostart", "terminate a#2"}, {"a ends", "start a#3"}, {"a up", "start b#3"}}},
    {"a_failed_rest_restart_keeps_those_before", "rest_for_one 5/1000", "a b c",
     {{"b fails", "terminate c#1"}, {"c ends", "start b#2"}, {"b nostart", "start b#3"}, {"b up", "start c#2"}, {"c nostart", "start c#3"}}},
    {"a_failed_start_has_its_reason", "one_for_one", "a b",
     {{"start", "start a#1"}, {"a nostart", "escalate"}}, from_start},
};

const std::vector<row> shutdown_rows{
    {"shutdown_stops_in_reverse_order", "one_for_one", "a b c",
     {{"shutdown", "terminate c#1"}, {"c ends", "terminate b#1"}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}},
    {"shutdown_before_the_start", "one_for_one", "a",
     {{"shutdown", "stopped"}, {"start", ""}}, from_start},
    {"shutdown_twice_is_one_shutdown", "one_for_one", "a",
     {{"shutdown", "terminate a#1"}, {"shutdown", ""}, {"a ends", "stopped"}}},
    {"shutdown_passes_over_ended_children", "one_for_one", "a t:transient c",
     {{"t exits", ""}, {"shutdown", "terminate c#1"}, {"c ends", "terminate a#1"}, {"a ends", "stopped"}}},
    {"shutdown_while_starting_stops_the_one_that_starts", "one_for_one", "a b c",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"shutdown", "terminate b#1"}, {"b up", ""}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}, from_start},
    {"shutdown_while_starting_and_that_start_fails", "one_for_one", "a b",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"shutdown", "terminate b#1"}, {"b nostart", "terminate a#1"}, {"a ends", "stopped"}}, from_start},
    {"shutdown_while_a_group_is_being_stopped", "one_for_all", "a b c",
     {{"a fails", "terminate c#1"}, {"shutdown", ""}, {"c ends", "terminate b#1"}, {"b ends", "stopped"}}},
    {"shutdown_while_a_group_is_being_started", "one_for_all", "a b c",
     {{"c fails", "terminate b#1"}, {"b ends", "terminate a#1"}, {"a ends", "start a#2"}, {"a up", "start b#2"}, {"shutdown", "terminate b#2"}, {"b ends", "terminate a#2"}, {"a ends", "stopped"}}},
    {"shutdown_while_one_child_restarts", "one_for_one", "a b",
     {{"a fails", "start a#2"}, {"shutdown", "terminate b#1"}, {"a up", ""}, {"b ends", "terminate a#2"}, {"a ends", "stopped"}}},
    {"a_failure_during_shutdown_restarts_nothing", "one_for_all", "a b c",
     {{"shutdown", "terminate c#1"}, {"a fails", ""}, {"c ends", "terminate b#1"}, {"b fails", "stopped"}}},
    {"a_late_child_is_killed", "one_for_one", "a:timeout=300",
     {{"shutdown", "terminate a#1"}, {"+299", ""}, {"+1", "kill a#1"}, {"+9000", ""}, {"a fails", "stopped"}}},
    {"time_outs_run_one_after_the_other", "one_for_one", "a:timeout=300 b:timeout=300",
     {{"shutdown", "terminate b#1"}, {"+300", "kill b#1"}, {"b fails", "terminate a#1"}, {"+299", ""}, {"+1", "kill a#1"}, {"a fails", "stopped"}}},
    {"brutal_kill_kills_at_once", "one_for_one", "a:kill b",
     {{"shutdown", "terminate b#1"}, {"b ends", "kill a#1"}, {"+9000", ""}, {"a fails", "stopped"}}},
    {"infinity_is_never_killed", "one_for_one", "a:infinity",
     {{"shutdown", "terminate a#1"}, {"+900000", ""}, {"a ends", "stopped"}}},
    {"a_time_out_of_0_kills_at_the_next_tick", "one_for_one", "a:timeout=0",
     {{"shutdown", "terminate a#1"}, {"+0", "kill a#1"}}},
    {"a_group_restart_kills_late_siblings_and_goes_on", "one_for_all", "a b:timeout=100",
     {{"a fails", "terminate b#1"}, {"+100", "kill b#1"}, {"b fails", "start a#2"}}},
    {"any_significant_child_that_ended_stops_all", "one_for_one any_significant", "a s:transient:significant u:transient:significant",
     {{"s exits", "terminate u#1"}, {"u ends", "terminate a#1"}, {"a ends", "stopped"}}},
    {"a_significant_child_that_is_restarted_stops_nothing", "one_for_one any_significant", "a s:transient:significant",
     {{"s fails", "start s#2"}}},
    {"a_significant_temporary_child_stops_all_also_when_it_failed", "one_for_one any_significant", "s:temporary:significant",
     {{"s fails", "stopped"}}},
    {"an_insignificant_child_that_ended_stops_nothing", "one_for_one any_significant", "s:transient:significant t:transient",
     {{"t exits", ""}}},
    {"all_significant_children_must_have_ended", "one_for_one all_significant", "s:transient:significant u:temporary:significant",
     {{"s exits", ""}, {"u fails", "stopped"}}},
    {"a_significant_child_stopped_with_its_group_stops_nothing", "one_for_all any_significant", "a s:temporary:significant",
     {{"a fails", "terminate s#1"}, {"s ends", "start a#2"}, {"a up", ""}}},
};

const std::vector<row> late_event_rows{
    {"a_late_end_of_an_older_start_is_ignored", "one_for_one 5/1000", "a",
     {{"a fails", "start a#2"}, {"a#1 fails", ""}, {"a up", ""}, {"a#1 fails", ""}}},
    {"a_late_up_of_an_older_start_is_ignored", "one_for_one 5/1000", "a b",
     {{"start", "start a#1"}, {"a up", "start b#1"}, {"b up", "started"}, {"a fails", "start a#2"}, {"a#1 up", ""}}, from_start},
    {"a_late_failed_start_of_an_older_start_is_ignored", "one_for_one 5/1000", "a",
     {{"a fails", "start a#2"}, {"a#1 nostart", ""}}},
    {"an_event_of_a_start_that_never_was_is_ignored", "one_for_one", "a",
     {{"a#7 fails", ""}, {"a#0 up", ""}}},
    {"an_event_of_an_unknown_child_is_ignored", "one_for_one", "a",
     {{"z#1 fails", ""}}},
    {"the_same_end_twice_is_one_end", "one_for_one 1/1000", "t:transient",
     {{"t exits", ""}, {"t exits", ""}, {"t fails", ""}}},
    {"being_up_twice_is_being_up", "one_for_one", "a b",
     {{"a up", ""}, {"b up", ""}}},
    {"a_failed_start_of_a_child_that_is_up_is_ignored", "one_for_one", "a",
     {{"a nostart", ""}}},
    {"up_while_being_stopped_changes_nothing", "one_for_all", "a b",
     {{"a fails", "terminate b#1"}, {"b up", ""}, {"b ends", "start a#2"}}},
};

const std::vector<row> membership_rows{
    {"an_added_child_starts", "one_for_one", "a",
     {{"add b", "start b#1"}, {"b up", ""}, {"shutdown", "terminate b#1"}}},
    {"an_added_child_waits_for_those_that_start", "one_for_one", "a b",
     {{"start", "start a#1"}, {"add c", ""}, {"a up", "start b#1"}, {"b up", "start c#1, started"}}, from_start},
    {"an_added_child_that_cannot_start_is_forgotten", "one_for_one 0/1000", "a",
     {{"add b", "start b#1"}, {"b nostart", ""}, {"add b", "start b#2"}}},
    {"two_children_cannot_have_one_id", "one_for_one", "a",
     {{"add a", "error"}}},
    {"a_removed_child_is_stopped_and_not_restarted", "one_for_all", "a b",
     {{"remove a", "terminate a#1"}, {"a fails", ""}, {"a up", ""}}},
    {"a_removed_child_can_be_added_again_and_late_events_stay_late", "one_for_one", "a b",
     {{"remove b", "terminate b#1"}, {"b ends", ""}, {"add b", "start b#2"}, {"b#1 fails", ""}, {"b up", ""}}},
    {"a_child_being_removed_is_killed_when_late", "one_for_one", "a:timeout=50",
     {{"remove a", "terminate a#1"}, {"+50", "kill a#1"}, {"a fails", ""}}},
    {"an_ended_child_is_removed_at_once", "one_for_one", "t:transient",
     {{"t exits", ""}, {"remove t", ""}, {"remove t", "error"}}},
    {"removing_a_child_that_starts_stops_it", "one_for_one", "a b",
     {{"start", "start a#1"}, {"remove a", "terminate a#1, start b#1"}, {"a ends", ""}, {"b up", "started"}}, from_start},
    {"removing_the_child_a_group_waits_for_lets_it_go_on", "one_for_all", "a b",
     {{"a fails", "terminate b#1"}, {"remove b", ""}, {"b ends", "start a#2"}, {"a up", ""}}},
    {"shutdown_waits_for_a_child_that_is_being_removed", "one_for_one", "a b",
     {{"remove b", "terminate b#1"}, {"shutdown", ""}, {"b ends", "terminate a#1"}, {"a ends", "stopped"}}},
};

const std::vector<row> delay_rows{
    {"a_delayed_restart_waits", "one_for_one 9/60000 delay=100-400", "a",
     {{"a fails", ""}, {"+99", ""}, {"+1", "start a#2"}}},
    {"the_delay_doubles_up_to_its_maximum", "one_for_one 9/60000 delay=100-300", "a",
     {{"a fails", ""}, {"+100", "start a#2"}, {"a up", ""}, {"a fails", ""}, {"+200", "start a#3"}, {"a nostart", ""}, {"+299", ""}, {"+1", "start a#4"}}},
    {"a_child_that_had_settled_is_not_delayed_and_the_next_delay_is_the_first", "one_for_one 9/1000 delay=100-400", "a",
     {{"a fails", ""}, {"+100", "start a#2"}, {"a up", ""}, {"a breaks", "start a#3"}, {"a up", ""}, {"a fails", ""}, {"+100", "start a#4"}}},
    {"a_failure_that_repeats_reaches_the_intensity_through_its_delays", "one_for_one 3/1000 delay=100-250", "a",
     {{"a fails", ""}, {"+100", "start a#2"}, {"a nostart", ""}, {"+200", "start a#3"}, {"a nostart", ""}, {"+250", "start a#4"}, {"a nostart", "escalate"}}},
    {"a_delayed_group_starts_in_order_after_the_delay", "one_for_all 9/1000 delay=100-400", "a b",
     {{"b fails", "terminate a#1"}, {"a ends", ""}, {"+100", "start a#2"}, {"a up", "start b#2"}}},
    {"shutdown_during_a_delay", "one_for_one 9/1000 delay=100-400", "a b",
     {{"a fails", ""}, {"shutdown", "terminate b#1"}, {"b ends", "stopped"}, {"+100", ""}}},
    {"other_children_are_not_delayed", "one_for_one 9/1000 delay=100-400", "a b",
     {{"a fails", ""}, {"+50", ""}, {"b fails", ""}, {"+50", "start a#2"}, {"+50", "start b#2"}}},
};

// clang-format on

std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const auto& some : {restart_rows, intensity_rows, start_rows, shutdown_rows, late_event_rows,
                           membership_rows, delay_rows})
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

TEST(supervisor_conformance_table, has_at_least_60_rows) { EXPECT_GE(all_rows().size(), 60U); }

} // namespace
} // namespace dlrun::supervision::testing
