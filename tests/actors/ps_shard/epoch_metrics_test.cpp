#include "actors/ps_shard/epoch_metrics.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

double hits(const epoch_metrics& metrics) { return std::bit_cast<double>(metrics.sums()->sum_bits.at(0)); }
double loss_sum(const epoch_metrics& metrics) { return std::bit_cast<double>(metrics.sums()->loss_sum_bits); }

TEST(epoch_metrics, there_are_none_before_the_first_step) { EXPECT_FALSE(epoch_metrics{}.sums()); }

TEST(epoch_metrics, sums_the_steps_of_an_epoch) {
  epoch_metrics metrics;
  metrics.add(0, {12.0, 4, {3}});
  metrics.add(0, {4.0, 2, {1}});
  EXPECT_EQ(metrics.sums()->epoch, 0U);
  EXPECT_EQ(loss_sum(metrics), 16.0);
  EXPECT_EQ(hits(metrics), 4.0);
  EXPECT_EQ(metrics.sums()->records, 6U);
  EXPECT_EQ(std::bit_cast<double>(metrics.sums()->step_loss_bits), 2.0) << "the mean of the newest step";
}

TEST(epoch_metrics, an_epoch_begins_with_nothing_of_the_one_before) {
  epoch_metrics metrics;
  metrics.add(0, {12.0, 4, {3}});
  metrics.add(1, {5.0, 2, {1}});
  EXPECT_EQ(metrics.sums()->epoch, 1U);
  EXPECT_EQ(loss_sum(metrics), 5.0);
  EXPECT_EQ(hits(metrics), 1.0);
  EXPECT_EQ(metrics.sums()->records, 2U);
}

TEST(epoch_metrics, a_step_of_which_nothing_is_left_shows_the_loss_of_the_one_before) {
  epoch_metrics metrics;
  metrics.add(0, {4.0, 2, {1}});
  metrics.add(0, {0.0, 0, {0}});
  EXPECT_EQ(metrics.sums()->records, 2U);
  EXPECT_EQ(std::bit_cast<double>(metrics.sums()->step_loss_bits), 2.0);
}

/// 0.1 + 0.2 + 0.3 depends on the order in which it is added.
TEST(epoch_metrics, goes_on_from_what_was_restored_with_the_same_bits) {
  epoch_metrics whole;
  for (const double loss : {0.1, 0.2, 0.3}) whole.add(2, {loss, 1, {loss}});
  epoch_metrics before;
  for (const double loss : {0.1, 0.2}) before.add(2, {loss, 1, {loss}});
  epoch_metrics after{before.sums()};
  after.add(2, {0.3, 1, {0.3}});
  EXPECT_EQ(after.sums(), whole.sums());
}

} // namespace
} // namespace dlrun::ps_shard
