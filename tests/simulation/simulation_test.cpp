#include "tests/simulation/simulation.hpp"

#include "tests/simulation/scenario.hpp"

#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace dlrun::simulation {
namespace {

std::string trace_of(std::uint64_t seed) {
  std::ostringstream trace;
  const auto outcome = run_seed({seed, protocol::planted_bug::none, &trace});
  EXPECT_EQ(outcome.broken, "") << "seed " << seed;
  return trace.str();
}

TEST(simulation, the_same_seed_runs_the_same_way_event_by_event) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto once = trace_of(seed);
    EXPECT_GT(once.size(), 500U);
    EXPECT_EQ(once, trace_of(seed)) << "seed " << seed;
  }
}

TEST(simulation, tracing_does_not_change_the_run) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::ostringstream trace;
    EXPECT_EQ(run_seed({seed, protocol::planted_bug::none, &trace}).events, run_seed({seed}).events);
  }
}

TEST(simulation, different_seeds_run_differently) { EXPECT_NE(trace_of(1), trace_of(2)); }

TEST(simulation, every_kind_of_fault_is_planned_within_a_hundred_seeds) {
  std::set<fault_kind> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const auto& fault : draw_scenario(seed).faults) seen.insert(fault.kind);
  EXPECT_EQ(seen.size(), 11U);
}

TEST(simulation, shards_crash_and_come_back_from_their_log_in_many_seeds) {
  int restored = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::ostringstream trace;
    run_seed({seed, protocol::planted_bug::none, &trace});
    for (int version = 1; version < 10; ++version)
      if (trace.str().find("restores version " + std::to_string(version)) != std::string::npos) ++restored;
  }
  EXPECT_GT(restored, 15);
}

} // namespace
} // namespace dlrun::simulation
