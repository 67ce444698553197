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

TEST(event_json, a_place_is_a_host_with_or_without_a_reason) {
  EXPECT_EQ(shown({}, {"beta", "its store is there"}),
            R"({"event":"x","host":"beta","reason":"its store is there"})");
  EXPECT_EQ(shown({}, {"beta", ""}), R"({"event":"x","host":"beta"})");
}

} // namespace
} // namespace dlrun::agent
