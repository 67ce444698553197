#include "cli/told_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::IsEmpty;

ordered_json status_with(const ordered_json& keeper) {
  return {{"roles", {{{"role", "ps_shard"}, {"index", 1}, {"state", "training"}}, keeper}}};
}

TEST(told_copies, are_none_of_a_job_that_has_none) {
  EXPECT_THAT(tell_copies({{"roles", ordered_json::array()}}), IsEmpty());
  EXPECT_THAT(tell_losses({{"roles", ordered_json::array()}}), IsEmpty());
}

TEST(told_copies, say_where_each_is_and_what_is_known_of_it) {
  ordered_json keeper{{"role", "keeper"}, {"index", 1}, {"state", "waiting"}};
  EXPECT_THAT(tell_copies(status_with(keeper)),
              ElementsAre("copies: ps_shard 1 on no other host yet (waiting)"));
  keeper["state"] = "whole";
  keeper["store"] = {{"host", "gamma"}};
  keeper["copy"] = {{"behind", 2}};
  EXPECT_THAT(tell_copies(status_with(keeper)),
              ElementsAre("copies: ps_shard 1 on gamma (whole)", "copy of ps_shard 1: 2 steps behind"));
}

TEST(told_copies, say_what_each_costs) {
  ordered_json keeper{{"role", "keeper"}, {"index", 1}, {"state", "whole"}, {"store", {{"host", "gamma"}}}};
  keeper["copy"] = {{"behind", 2},
                    {"bytes_per_step", 2'680'000},
                    {"bytes_per_second", 11'800'000},
                    {"step_ms", 250.5},
                    {"busy", 0.907},
                    {"waited", 0.75},
                    {"slow", true}};
  const auto* const cost =
      "copy of ps_shard 1: 2 steps behind; 2.68 MB a step at 11.80 MB/s, on its way 91 % of the "
      "time; steps of 250.5 ms wait for it 75 % of the time";
  EXPECT_EQ(tell_copies(status_with(keeper)).back(), std::string{cost} + ": that is much");
  keeper["copy"]["slow"] = false;
  EXPECT_EQ(tell_copies(status_with(keeper)).back(), cost);
}

TEST(told_copies, say_of_several_of_a_ps_shard_which_is_which) {
  const ordered_json keeper{{"role", "keeper"},
                            {"index", 1001},
                            {"state", "whole"},
                            {"store", {{"host", "delta"}}},
                            {"copy", {{"behind", 2}}}};
  EXPECT_THAT(tell_copies(status_with(keeper)),
              ElementsAre("copies: ps_shard 1 on delta (whole)", "copy 2 of ps_shard 1: 2 steps behind"));
}

/// Whichever they are: of the PS shard that has fewest whole copies one store stays.
TEST(told_losses, say_how_many_hosts_may_be_lost_at_once) {
  ordered_json status{{"roles", ordered_json::array()}, {"hosts", ordered_json::array()}};
  for (const auto* host : {"beta", "gamma", "delta"})
    status["hosts"].push_back({{"name", host}, {"state", "there"}});
  for (const auto shard : {0, 1}) {
    status["roles"].push_back({{"role", "ps_shard"}, {"index", shard}, {"state", "training"}});
    for (const auto copy : {0, 1})
      status["roles"].push_back({{"role", "keeper"}, {"index", 1000 * copy + shard}, {"state", "whole"}});
  }
  EXPECT_THAT(tell_losses(status), ElementsAre("any 2 of these hosts may be lost at once now without losing "
                                               "a committed step: beta, gamma, delta"));
  status["roles"].back()["state"] = "filling";
  EXPECT_THAT(tell_losses(status), ElementsAre("any one of these hosts may be lost now without losing a "
                                               "committed step: beta, gamma, delta"));
}

TEST(told_losses, name_the_hosts_that_may_be_lost_and_what_the_others_would_take_along) {
  ordered_json status{{"hosts",
                       {{{"name", "alpha"}, {"state", "there"}, {"loses", "the run"}},
                        {{"name", "beta"}, {"state", "there"}},
                        {{"name", "gamma"}, {"state", "away"}},
                        {{"name", "delta"}, {"state", "there"}}}}};
  EXPECT_THAT(
      tell_losses(status),
      ElementsAre("any one of these hosts may be lost now without losing a committed step: beta, delta",
                  "with alpha would be lost: the run"));
  status["status"] = "waiting";
  EXPECT_THAT(tell_losses(status), IsEmpty()) << "it has not begun";
  status["status"] = "running";
  status["hosts"].erase(3);
  status["hosts"][1]["loses"] = "all that ps_shard 1 has committed";
  EXPECT_THAT(tell_losses(status), ElementsAre("no host may be lost now without losing a committed step",
                                               "with alpha would be lost: the run",
                                               "with beta would be lost: all that ps_shard 1 has committed"));
}

} // namespace
} // namespace dlrun::cli
