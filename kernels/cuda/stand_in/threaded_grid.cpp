// The other grid: each thread of a block is a thread of the host, for ThreadSanitizer. Linked in
// place of grid.cpp, with DLRUN_STAND_IN_THREADS for all that includes cuda_on_cpu.hpp.
#include "kernels/cuda/stand_in/cuda_on_cpu.hpp"
#include "kernels/cuda/stand_in/grid.hpp"

#include <barrier>
#include <cstddef>
#include <dlrun/check.hpp>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

/// A launch that the threads of the host take part in.
struct grid_at_work {
  std::int64_t blocks;
  unsigned threads;
  const std::function<void()>& kernel;
  std::barrier<> block; ///< all threads of the block
};

thread_local grid_at_work* at_work = nullptr;

/// One block after the other, since they share their __shared__ memory. A thread that ends its part
/// of a block waits for the others, as if at a barrier.
void take_part(grid_at_work& grid, unsigned number) {
  at_work = &grid;
  gridDim.x = static_cast<unsigned>(grid.blocks);
  blockDim.x = grid.threads;
  threadIdx.x = number;
  for (std::int64_t block = 0; block < grid.blocks; ++block) {
    blockIdx.x = static_cast<unsigned>(block);
    grid.kernel();
    grid.block.arrive_and_wait();
  }
}

/// A thread of the host that takes part in one launch after the other.
class member {
public:
  explicit member(unsigned number)
      : thread_{[this, number] {
        for (;;) {
          begin_.acquire();
          if (grid_ == nullptr) return;
          take_part(*grid_, number);
          end_.release();
        }
      }} {}
  ~member() {
    begin(nullptr);
    thread_.join();
  }
  member(const member&) = delete;
  member& operator=(const member&) = delete;

  /// null: there is no more.
  void begin(grid_at_work* grid) {
    grid_ = grid;
    begin_.release();
  }
  void wait_for_end() { end_.acquire(); }

private:
  grid_at_work* grid_ = nullptr;
  std::binary_semaphore begin_{0}, end_{0};
  std::thread thread_;
};

/// Kept from launch to launch. Launches come from one thread.
std::vector<std::unique_ptr<member>>& team() {
  static std::vector<std::unique_ptr<member>> all;
  return all;
}

} // namespace

/// The order is that of the scheduler; a race is told of in any.
void run_grid(const thread_schedule& /*schedule*/, std::int64_t blocks, int threads,
              const std::function<void()>& kernel) {
  DLRUN_CHECK(blocks < (std::int64_t{1} << 31) && threads >= 1 && threads <= 1024,
              "a GPU takes no {} blocks of {} threads", blocks, threads);
  const auto count = static_cast<unsigned>(threads);
  grid_at_work grid{blocks, count, kernel, std::barrier<>{threads}};
  auto& members = team();
  while (members.size() < count)
    members.push_back(std::make_unique<member>(static_cast<unsigned>(members.size())));
  for (unsigned i = 0; i < count; ++i) members[i]->begin(&grid);
  for (unsigned i = 0; i < count; ++i) members[i]->wait_for_end();
}

void wait_for_block() { at_work->block.arrive_and_wait(); }

} // namespace dlrun::kernels::cuda
