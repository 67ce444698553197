/// A queue of work that nobody does before it is told to.
#pragma once

#include "kernels/cuda/stand_in/grid.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace dlrun::kernels::cuda {

/// One lane of a stand_in_device.
class stand_in_lane {
public:
  /// How the threads of kernels run here.
  explicit stand_in_lane(const thread_schedule& schedule)
      : order_(schedule.order)
      , random_(schedule.seed) {}

  void put(std::function<void()> work) { items_.push_back({std::move(work), nullptr}); }
  /// What comes from now on waits until `*done`.
  void put_wait(std::shared_ptr<const bool> done) { items_.push_back({{}, std::move(done)}); }

  /// What `capture` puts here, taken out again: works that may be put as often as wanted. They draw
  /// their schedules anew each time.
  template <class Capture>
  std::vector<std::function<void()>> taken_out(Capture capture) {
    const auto before = items_.size();
    capture();
    std::vector<std::function<void()>> works;
    for (; items_.size() > before; items_.pop_back())
      works.insert(works.begin(), std::move(items_.back().work));
    return works;
  }

  bool empty() const { return items_.empty(); }
  /// Whether its next work waits for nothing.
  bool can_advance() const {
    return !empty() && (items_.front().waits_for == nullptr || *items_.front().waits_for);
  }
  /// Does its next work.
  void advance() {
    const auto next = std::move(items_.front());
    items_.pop_front();
    if (next.work) next.work();
  }

  /// The schedule of one launch.
  thread_schedule next_schedule() { return {order_, random_()}; }

private:
  struct item {
    std::function<void()> work;
    std::shared_ptr<const bool> waits_for;
  };
  thread_order order_;
  std::mt19937_64 random_;
  std::deque<item> items_;
};

} // namespace dlrun::kernels::cuda
