#include "actors/agent/event_json.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::agent {
namespace {

std::string shown(protocol::event_numbers numbers, protocol::event_place place = {}) {
  protocol::job_event event;
  event.numbers = std::move(numbers);
  event.place = std::move(place);
  nlohmann::ordered_json line{{"event", "x"}};
  add_details(event, line);
  return line.dump();
}

TEST(event_json, an_event_without_numbers_and_place_has_none) { EXPECT_EQ(shown({}), R"({"event":"x"})"); }

TEST(event_json, going_back_to_the_begin_is_a_step_too) {
  EXPECT_EQ(shown({.has_step = true}), R"({"event":"x","step":0})");
}

TEST(event_json, times_are_milliseconds) {
  EXPECT_EQ(shown({.after_us = 220'500}), R"({"event":"x","after_ms":220.5})");
}

TEST(event_json, values_keep_their_names_and_order_and_what_is_no_number_is_null) {
  EXPECT_EQ(shown({.has_step = true,
                   .step = 63,
                   .values = {{"loss", std::bit_cast<std::uint64_t>(0.125)},
                              {"auc", std::bit_cast<std::uint64_t>(std::nan(""))}}}),
            R"({"event":"x","step":63,"values":{"loss":0.125,"auc":null}})");
}

TEST(event_json, a_count_has_no_decimal_point) {
  EXPECT_EQ(shown({.values = {protocol::named_number("workers", 3), protocol::named_number("seconds", 3)}}),
            R"({"event":"x","values":{"workers":3,"seconds":3.0}})");
}

TEST(event_json, a_place_is_a_host_with_or_without_a_reason) {
  EXPECT_EQ(shown({}, {"beta", "its store is there"}),
            R"({"event":"x","host":"beta","reason":"its store is there"})");
  EXPECT_EQ(shown({}, {"beta", ""}), R"({"event":"x","host":"beta"})");
}

TEST(event_json, another_process_reads_the_event_of_a_line) {
  const protocol::job_event told{.event = "evaluated",
                                 .role = {protocol::role_kind::data_dispatcher, 2},
                                 .incarnation = {3},
                                 .text = "step 63",
                                 .numbers = {.has_step = true,
                                             .step = 63,
                                             .after_us = 220'500,
                                             .values = {{"loss", std::bit_cast<std::uint64_t>(0.125)},
                                                        {"auc", std::bit_cast<std::uint64_t>(0.5)}}},
                                 .place = {"beta", "its store is there"},
                                 .at_us = 6'606'505'425};
  const auto line = to_json_line(told);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = from_json_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->event, told.event);
  EXPECT_EQ(read->role, told.role);
  EXPECT_EQ(read->incarnation, told.incarnation);
  EXPECT_EQ(read->text, told.text);
  EXPECT_EQ(read->numbers, told.numbers);
  EXPECT_EQ(read->place, told.place);
  EXPECT_EQ(read->at_us, told.at_us);
}

TEST(event_json, an_event_of_each_role_is_read_and_one_that_says_nothing_more) {
  for (const auto kind :
       {protocol::role_kind::coordinator, protocol::role_kind::ps_shard, protocol::role_kind::worker,
        protocol::role_kind::agent, protocol::role_kind::host_agent}) {
    protocol::job_event told;
    told.role.kind = kind;
    const auto read = from_json_line(to_json_line(told));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->role, told.role);
    EXPECT_EQ(read->numbers, told.numbers);
  }
}

TEST(event_json, a_damaged_line_has_no_event) {
  const auto whole = to_json_line({.event = "rewind", .role = {}, .incarnation = {}, .text = "back"});
  EXPECT_TRUE(from_json_line(whole));
  for (const auto& line : {whole.substr(0, whole.size() / 2), std::string{}, std::string{"[]"},
                           std::string{R"({"event":5,"text":[]})"}})
    EXPECT_FALSE(from_json_line(line)) << line;
}

} // namespace
} // namespace dlrun::agent
