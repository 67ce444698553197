#include "actors/ps_shard/norm_exchange.hpp"

#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using testing::IsEmpty;

/// Of PS shard 1 of three; what is combined is the concatenation, read as a decimal number.
class norm_exchange_test : public testing::Test {
protected:
  norm_exchange_test()
      : exchange({1}, 3, 3, [](const std::vector<norm_partials>& all) {
        std::uint64_t number = 0;
        for (const auto& of_shard : all)
          for (const auto one : of_shard) number = 10 * number + one;
        return number;
      }) {
    exchange.restart({2}, {});
  }
  void measure(std::uint64_t step, norm_partials partials) {
    EXPECT_TRUE(exchange.must_measure({step}));
    exchange.measured({step}, std::move(partials), sent);
  }
  void hear(std::uint32_t shard, std::uint64_t step, norm_partials partials, std::uint64_t timeline = 2) {
    exchange.heard({{timeline}, {shard}, {step}, std::move(partials)}, {5});
  }

  norm_exchange exchange;
  ps_shard_actions sent;
};

TEST_F(norm_exchange_test, a_step_is_measured_once_and_told_to_all_others) {
  measure(5, {4, 5});
  EXPECT_FALSE(exchange.must_measure({5}));
  EXPECT_EQ(sent, (ps_shard_actions{send_norm{{0}, {{2}, {1}, {5}, {4, 5}}},
                                    send_norm{{2}, {{2}, {1}, {5}, {4, 5}}}}));
}

TEST_F(norm_exchange_test, is_combined_in_shard_order_when_all_are_there) {
  hear(2, 5, {6});
  measure(5, {4, 5});
  EXPECT_EQ(exchange.combined({5}), std::nullopt);
  hear(0, 5, {1, 2, 3});
  EXPECT_EQ(exchange.combined({5}), 123456U);
  EXPECT_EQ(exchange.own({5}), (norm_partials{4, 5}));
}

TEST_F(norm_exchange_test, what_is_of_another_timeline_or_past_or_far_ahead_or_nobody_is_not_kept) {
  measure(5, {4});
  hear(0, 5, {1}, 1);
  hear(7, 5, {1});
  hear(1, 5, {1});
  exchange.heard({{2}, {0}, {4}, {1}}, {5});
  exchange.heard({{2}, {0}, {9}, {1}}, {5});
  hear(2, 5, {6});
  EXPECT_EQ(exchange.combined({5}), std::nullopt);
}

TEST_F(norm_exchange_test, is_told_and_asked_again_until_all_are_there) {
  exchange.repeat({5}, sent);
  EXPECT_THAT(sent, IsEmpty()) << "not measured yet";
  measure(5, {4});
  hear(0, 5, {1});
  sent.clear();
  exchange.repeat({5}, sent);
  EXPECT_EQ(sent.size(), 3U) << "both are told, and one is asked";
  EXPECT_EQ(std::get<send_norm_request>(sent.back()), (send_norm_request{{2}, {{2}, {1}, {5}}}));
}

TEST_F(norm_exchange_test, shards_that_lag_are_answered_from_the_last_steps) {
  for (std::uint64_t step = 0; step < 8; ++step) {
    measure(step, {step});
    exchange.forget_before({step + 1}, false);
  }
  sent.clear();
  exchange.asked({{2}, {0}, {5}}, sent);
  EXPECT_EQ(sent, (ps_shard_actions{send_norm{{0}, {{2}, {1}, {5}, {5}}}}));
  sent.clear();
  exchange.asked({{2}, {0}, {4}}, sent);
  exchange.asked({{1}, {0}, {5}}, sent);
  exchange.asked({{2}, {9}, {5}}, sent);
  EXPECT_THAT(sent, IsEmpty());
  EXPECT_EQ(exchange.known_from({8}), step_id{5});
}

TEST_F(norm_exchange_test, after_a_restart_it_knows_what_the_log_knows) {
  exchange.restart({3}, {{{6}, {1}}, {{7}, {2}}});
  EXPECT_EQ(exchange.known_from({8}), step_id{6});
  EXPECT_EQ(exchange.known_from({9}), step_id{9}) << "7 is not the step before";
}

TEST(norm_of, adds_in_block_order_however_blocks_are_spread_over_shards) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const norm_partials all{bits(1e16), bits(1), bits(1), bits(0.5), bits(3e-7)};
  const auto norm = norm_of({all});
  EXPECT_EQ(norm, bits(1e8)) << "each 1 is lost beside 1e16";
  EXPECT_EQ(norm_of({{all[0]}, {all[1], all[2]}, {}, {all[3], all[4]}}), norm);
  EXPECT_EQ(norm_of({{all[0], all[1], all[2]}, {all[3], all[4]}}), norm);
  EXPECT_EQ(norm_of({{bits(9)}, {bits(16)}}), bits(5));
  EXPECT_EQ(norm_of({{}, {}}), bits(0));
}

TEST(norm_exchange, where_nothing_couples_nothing_happens) {
  norm_exchange none({0}, 2, 3, nullptr);
  ps_shard_actions sent;
  EXPECT_FALSE(none.must_measure({0}));
  EXPECT_EQ(none.combined({0}), 0U);
  none.repeat({0}, sent);
  none.asked({{0}, {1}, {0}}, sent);
  EXPECT_THAT(sent, IsEmpty());
  EXPECT_EQ(none.known_from({9}), step_id{0});
}

} // namespace
} // namespace dlrun::ps_shard
