#include "kernels/cuda/stand_in/cuda_on_cpu.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

constexpr thread_schedule ascending{thread_order::ascending, 0}, descending{thread_order::descending, 0},
    seeded{thread_order::seeded, 1};

/// The threads of one block in the order in which they run, before and behind a barrier.
std::vector<unsigned> order_of(const thread_schedule& schedule, int threads, bool barrier) {
  std::vector<unsigned> order;
  run_grid(schedule, 1, threads, [&] {
    if (barrier) __syncthreads();
    order.push_back(threadIdx.x);
  });
  return order;
}

TEST(grid, threads_run_in_the_order_that_is_asked_for) {
  for (const bool barrier : {false, true}) {
    EXPECT_EQ(order_of(ascending, 4, barrier), (std::vector<unsigned>{0, 1, 2, 3}));
    EXPECT_EQ(order_of(descending, 4, barrier), (std::vector<unsigned>{3, 2, 1, 0}));
    const auto drawn = order_of(seeded, 64, barrier);
    EXPECT_FALSE(std::ranges::is_sorted(drawn));
    EXPECT_EQ(order_of(seeded, 64, barrier), drawn);
    EXPECT_NE(order_of({thread_order::seeded, 2}, 64, barrier), drawn);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 64U);
  }
}

TEST(grid, a_seeded_order_is_another_behind_each_barrier) {
  std::vector<std::vector<unsigned>> orders(3);
  run_grid(seeded, 1, 64, [&] {
    for (auto& order : orders) {
      order.push_back(threadIdx.x);
      __syncthreads();
    }
  });
  EXPECT_EQ(std::set(orders.begin(), orders.end()).size(), 3U);
}

TEST(grid, each_thread_of_each_block_runs_once_and_knows_its_place) {
  std::vector<int> runs(5 * 7, 0);
  run_grid(seeded, 5, 7, [&] {
    EXPECT_EQ(gridDim.x, 5U);
    EXPECT_EQ(blockDim.x, 7U);
    const unsigned thread = threadIdx.x;
    if (blockIdx.x % 2 == 0) __syncthreads(); // a place is kept while others run
    EXPECT_EQ(threadIdx.x, thread);
    ++runs[blockIdx.x * 7 + threadIdx.x];
  });
  EXPECT_EQ(runs, std::vector<int>(5 * 7, 1));
}

TEST(grid, nobody_passes_a_barrier_before_all_have_come) {
  for (const auto& schedule : {ascending, descending, seeded}) {
    int come = 0;
    run_grid(schedule, 3, 256, [&] {
      const int before = static_cast<int>(blockIdx.x) * 256 * 2;
      ++come;
      __syncthreads();
      EXPECT_EQ(come, before + 256);
      __syncthreads();
      ++come;
      __syncthreads();
      EXPECT_EQ(come, before + 512);
    });
  }
}

/// A sum by halves, with and without the barrier that it needs.
int sum_of(const thread_schedule& schedule, bool barrier) {
  std::vector<int> values(256);
  std::iota(values.begin(), values.end(), 0);
  run_grid(schedule, 1, 256, [&] {
    for (unsigned half = 128; half > 0; half /= 2) {
      if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
      if (barrier) __syncthreads();
    }
  });
  return values[0];
}

TEST(grid, a_missing_barrier_gives_wrong_numbers) {
  for (const auto& schedule : {ascending, descending, seeded}) EXPECT_EQ(sum_of(schedule, true), 255 * 128);
  EXPECT_NE(sum_of(ascending, false), 255 * 128);
  EXPECT_NE(sum_of(seeded, false), 255 * 128);
}

TEST(grid, a_barrier_that_a_thread_never_reaches_ends_the_process) {
  for (const auto& schedule : {ascending, descending})
    EXPECT_DEATH(run_grid(schedule, 1, 8,
                          [] {
                            if (threadIdx.x != 3) __syncthreads();
                          }),
                 "7 threads wait at a barrier that 1 others never reach");
}

TEST(grid, more_threads_than_a_gpu_takes_end_the_process) {
  EXPECT_DEATH(run_grid(ascending, 1, 1025, [] {}), "no 1 blocks of 1025 threads");
}

TEST(grid, host_threads_run_grids_beside_each_other) {
  const auto many_sums = [] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(sum_of(seeded, true), 255 * 128);
  };
  std::jthread other(many_sums);
  many_sums();
}

TEST(grid, an_atomic_minimum_keeps_the_smaller_and_says_what_was_there) {
  long long at = 5;
  EXPECT_EQ(atomicMin(&at, 7LL), 5);
  EXPECT_EQ(at, 5);
  EXPECT_EQ(atomicMin(&at, -2LL), 5);
  EXPECT_EQ(at, -2);
}

} // namespace
} // namespace dlrun::kernels::cuda
