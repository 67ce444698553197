#include "data/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <vector>

namespace dlrun::data {
namespace {

std::vector<std::uint64_t> all(const permutation& p, std::uint64_t size) {
  std::vector<std::uint64_t> out(size);
  for (std::uint64_t i = 0; i < size; ++i) out[i] = p(i);
  return out;
}

bool is_permutation_of_range(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != i) return false;
  return true;
}

TEST(permutation, takes_every_place_once_for_any_size) {
  for (std::uint64_t size = 1; size <= 300; ++size)
    EXPECT_TRUE(is_permutation_of_range(all(permutation(7, size, size), size))) << size;
  for (const std::uint64_t size : {1023, 1024, 1025, 4095, 10'007, 60'000, 65'537, 250'000})
    EXPECT_TRUE(is_permutation_of_range(all(permutation(7, 3, size), size))) << size;
}

TEST(permutation, stays_within_very_large_sizes) {
  const std::uint64_t size = (std::uint64_t{1} << 62) - 57;
  const permutation p(1, 1, size);
  std::vector<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.push_back(p(size - 1 - i));
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), size);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(permutation, differs_by_seed_and_by_epoch_and_repeats_otherwise) {
  const auto base = all(permutation(1, 0, 1000), 1000);
  EXPECT_EQ(base, all(permutation(1, 0, 1000), 1000));
  for (const auto& other : {permutation(2, 0, 1000), permutation(1, 1, 1000), permutation(0, 1, 1000)}) {
    const auto places = all(other, 1000);
    std::size_t same = 0;
    for (std::size_t i = 0; i < places.size(); ++i) same += places[i] == base[i] ? 1 : 0;
    EXPECT_LT(same, 10U) << "two random orders agree in about one place";
  }
}

// The order is part of what makes a run repeatable: it must not change between versions.
TEST(permutation, keeps_the_order_of_the_first_release) {
  EXPECT_EQ(all(permutation(1, 0, 12), 12),
            (std::vector<std::uint64_t>{9, 1, 10, 4, 2, 3, 11, 6, 8, 5, 7, 0}));
  const permutation large(1, 2, 60'000);
  EXPECT_EQ((std::vector<std::uint64_t>{large(0), large(1), large(59'999)}),
            (std::vector<std::uint64_t>{30973, 44773, 34821}));
}

TEST(permutation, reaches_every_order_of_few_records_about_equally_often) {
  std::map<std::vector<std::uint64_t>, int> seen;
  constexpr int trials = 24'000;
  for (std::uint64_t seed = 0; seed < trials; ++seed) ++seen[all(permutation(seed, 0, 4), 4)];
  EXPECT_EQ(seen.size(), 24U);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, trials / 24, 200) << "6 standard deviations";
}

TEST(permutation, sends_a_place_anywhere_with_equal_chance) {
  // Chi-square over 64 bins of where place 17 of 60000 goes, for 6400 epochs: mean 63, standard
  // deviation 11.2.
  std::array<double, 64> bins{};
  for (std::uint64_t epoch = 0; epoch < 6400; ++epoch)
    bins[permutation(1, epoch, 60'000)(17) * 64 / 60'000] += 1;
  double chi_square = 0;
  for (const double count : bins) chi_square += (count - 100) * (count - 100) / 100;
  EXPECT_LT(chi_square, 63 + 5 * 11.2);
  EXPECT_GT(chi_square, 63 - 5 * 11.2);
}

TEST(permutation, leaves_no_pattern_between_neighbours) {
  constexpr std::uint64_t size = 60'000;
  for (const std::uint64_t epoch : {0, 1, 2, 3}) {
    const auto order = all(permutation(5, epoch, size), size);
    double with_place = 0, with_next = 0, rises = 0, fixed = 0;
    const double mean = (size - 1) / 2.0, variance = (static_cast<double>(size) * size - 1) / 12.0;
    for (std::size_t i = 0; i + 1 < size; ++i) {
      with_place += (static_cast<double>(i) - mean) * (static_cast<double>(order[i]) - mean);
      with_next += (static_cast<double>(order[i + 1]) - mean) * (static_cast<double>(order[i]) - mean);
      rises += order[i + 1] > order[i] ? 1 : 0;
      fixed += order[i] == i ? 1 : 0;
    }
    const double tolerance =
        5 / std::sqrt(static_cast<double>(size)); // 5 standard deviations of a correlation
    EXPECT_LT(std::abs(with_place / variance / size), tolerance);
    EXPECT_LT(std::abs(with_next / variance / size), tolerance);
    EXPECT_NEAR(rises, size / 2.0, 5 * std::sqrt(size / 12.0));
    EXPECT_LT(fixed, 8) << "Poisson with mean 1";
  }
}

TEST(permutation_death, an_index_beyond_the_end_is_a_broken_invariant) {
  EXPECT_DEATH(permutation(1, 0, 10)(10), "index 10 of a permutation of 10");
}

} // namespace
} // namespace dlrun::data
