#include "kernels/cuda/stand_in/grid.hpp"
#include "kernels/cuda/stand_in/cuda_on_cpu.hpp"
#include "kernels/cuda/stand_in/fiber.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

/// The threads of one block at a time.
class block_runner {
public:
  block_runner(const thread_schedule& schedule, int threads, const std::function<void()>& kernel);
  ~block_runner() { current = nullptr; }
  block_runner(const block_runner&) = delete;
  block_runner& operator=(const block_runner&) = delete;

  void run_block();
  void wait_for_others();

  static thread_local block_runner* current;

private:
  static fiber& fiber_number(std::size_t number);
  void run_threads();
  void run_from_barrier();
  template <class Items>
  void draw_order(Items& items);

  thread_order order_;
  std::mt19937_64 random_;
  const std::function<void()>& kernel_;
  std::vector<unsigned> threads_; ///< in the order in which they begin
  std::size_t begun_ = 0, ended_ = 0;
  std::vector<fiber*> waiting_, freed_; ///< at the barrier; those that it lets go on
};

thread_local block_runner* block_runner::current = nullptr;

block_runner::block_runner(const thread_schedule& schedule, int threads, const std::function<void()>& kernel)
    : order_(schedule.order)
    , random_(schedule.seed)
    , kernel_(kernel)
    , threads_(static_cast<std::size_t>(threads)) {
  std::iota(threads_.begin(), threads_.end(), 0U);
  if (order_ == thread_order::descending) std::ranges::reverse(threads_);
  current = this;
}

/// Fibers are kept from launch to launch. Each takes threads of the current block until there are
/// no more, then waits for the next block.
fiber& block_runner::fiber_number(std::size_t number) {
  thread_local std::vector<std::unique_ptr<fiber>> pool;
  while (pool.size() <= number)
    pool.push_back(std::make_unique<fiber>([] {
      for (;;) {
        current->run_threads();
        fiber::current()->pause();
      }
    }));
  return *pool[number];
}

template <class Items>
void block_runner::draw_order(Items& items) {
  if (order_ == thread_order::seeded) std::ranges::shuffle(items, random_);
}

void block_runner::run_threads() {
  while (begun_ < threads_.size()) {
    threadIdx.x = threads_[begun_++];
    kernel_();
    ++ended_;
  }
}

void block_runner::run_block() {
  begun_ = ended_ = 0;
  draw_order(threads_);
  for (std::size_t number = 0; begun_ < threads_.size(); ++number) fiber_number(number).resume();
  while (!waiting_.empty()) run_from_barrier();
}

void block_runner::run_from_barrier() {
  DLRUN_CHECK(ended_ == 0, "of a block {} threads wait at a barrier that {} others never reach",
              waiting_.size(), ended_);
  freed_.swap(waiting_);
  waiting_.clear();
  draw_order(freed_);
  for (fiber* const one : freed_) one->resume();
}

void block_runner::wait_for_others() {
  const unsigned thread = threadIdx.x;
  waiting_.push_back(fiber::current());
  fiber::current()->pause();
  threadIdx.x = thread;
}

} // namespace

void run_grid(const thread_schedule& schedule, std::int64_t blocks, int threads,
              const std::function<void()>& kernel) {
  DLRUN_CHECK(blocks < (std::int64_t{1} << 31) && threads >= 1 && threads <= 1024,
              "a GPU takes no {} blocks of {} threads", blocks, threads);
  block_runner runner(schedule, threads, kernel);
  gridDim.x = static_cast<unsigned>(blocks);
  blockDim.x = static_cast<unsigned>(threads);
  for (std::int64_t block = 0; block < blocks; ++block) {
    blockIdx.x = static_cast<unsigned>(block);
    runner.run_block();
  }
}

void wait_for_block() { block_runner::current->wait_for_others(); }

} // namespace dlrun::kernels::cuda
