/// Runs the blocks and threads of a kernel, one after another.
#pragma once

#include <cstdint>
#include <functional>

namespace dlrun::kernels::cuda {

/// In which order the threads of a block run from one barrier to the next. A kernel that gives
/// other results for another order lacks a barrier.
enum class thread_order : std::uint8_t { ascending, descending, seeded };

/// The order of one launch. The seed is of thread_order::seeded: another order for each block and
/// after each barrier.
struct thread_schedule {
  thread_order order = thread_order::ascending;
  std::uint64_t seed = 0;
};

/// Calls `kernel` once for each thread of each block, with threadIdx and its like set. Blocks run
/// in ascending order. A thread that comes to a barrier waits there on a stack of its own until all
/// others of its block have come; where a kernel has no barrier, all threads run on one.
void run_grid(const thread_schedule& schedule, std::int64_t blocks, int threads,
              const std::function<void()>& kernel);

/// The barrier: __syncthreads(). That a thread of the block has ended before is a broken kernel,
/// and ends the process.
void wait_for_block();

} // namespace dlrun::kernels::cuda
