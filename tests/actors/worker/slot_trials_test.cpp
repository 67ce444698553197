#include "actors/worker/slot_trials.hpp"

#include <gmock/gmock.h>

namespace dlrun::worker {
namespace {

using ::testing::ElementsAre;

protocol::suspect_slot suspect(bool together) { return {{5}, {1}, together}; }

TEST(slot_trials, each_record_is_tried_alone_and_blamed_for_its_own_death) {
  const auto all = trials_of(suspect(false), {0, 2, 3});
  ASSERT_EQ(all.size(), 3U);
  for (const auto& trial : all) EXPECT_THAT(trial.records, ElementsAre(trial.blamed));
  EXPECT_EQ(progress_after(suspect(false), {0, 2, 3}), (protocol::slot_progress{{{5}, {1}}, true}))
      << "the whole slot, of which no record kills alone";
}

TEST(slot_trials, records_that_kill_together_are_found_by_the_last_that_joins) {
  const auto all = trials_of(suspect(true), {0, 2, 3, 7});
  ASSERT_EQ(all.size(), 6U);
  EXPECT_THAT(all[4].records, ElementsAre(0, 2));
  EXPECT_EQ(all[4].blamed, 2U);
  EXPECT_THAT(all[5].records, ElementsAre(0, 2, 3));
  EXPECT_EQ(all[5].blamed, 3U);
  EXPECT_EQ(progress_after(suspect(true), {0, 2, 3, 7}), (protocol::slot_progress{{{5}, {1}, 7}, true}));
}

} // namespace
} // namespace dlrun::worker
