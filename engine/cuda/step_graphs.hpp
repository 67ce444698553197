/// Runs of steps that come again, as graphs.
#pragma once

#include "kernels/cuda/device_api.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// Puts runs of steps into the lane compute of a device: the first time one by one, from the second
/// time on as a graph. What has become of a run is found by all arguments of all its steps, so that
/// a graph never runs with arguments other than those that were asked for; a batch size, say, or a
/// vector of gradients has graphs of its own. If the device refuses to make one, all steps are put
/// one by one from then on, which gives the same bits.
class step_graphs {
public:
  /// Steps of a run at most. A device that computes shows that it moves between runs: so this is as
  /// many as cuda_lane has between two milestones.
  static constexpr std::size_t steps_max = 64;
  /// Runs that are remembered. A pass of ResNet-50 has about 20, for each vector that it computes a
  /// gradient into; in place of the one that has not come for longest comes a new one.
  static constexpr std::size_t runs_max = 256;

  /// The device outlives it, and has done all that this put into its lane before it is destroyed.
  explicit step_graphs(kernels::cuda::device& on)
      : on_{on} {}
  step_graphs(const step_graphs&) = delete;
  step_graphs& operator=(const step_graphs&) = delete;

  /// Puts them there in their order.
  void run(std::span<const kernels::cuda::step> steps);
  /// Why the device makes no graphs; empty while it does.
  const std::string& refused() const { return refused_; }

private:
  struct kept_run {
    std::vector<kernels::cuda::step> steps;
    std::unique_ptr<kernels::cuda::graph> made; ///< null: it has come once
    std::uint64_t last_used = 0;
  };

  kept_run* find(std::span<const kernels::cuda::step> steps);
  void keep(std::span<const kernels::cuda::step> steps);
  bool make(kept_run& of);
  void run_one_by_one(std::span<const kernels::cuda::step> steps);

  kernels::cuda::device& on_;
  std::vector<kept_run> kept_;
  std::size_t next_ = 0; ///< of those, where the next is looked for first: passes are alike
  std::uint64_t used_ = 0;
  std::string refused_;
};

} // namespace dlrun::engine
