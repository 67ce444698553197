/// Devices for tests: the kernels of this folder on the processor, in lanes that nobody hurries.
#pragma once

#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/stand_in/bit_flip.hpp"
#include "kernels/cuda/stand_in/lane.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace dlrun::kernels::cuda {

/// What goes wrong. Numbers count from 1; 0 is never.
struct stand_in_faults {
  /// This call of allocate() or allocate_host(), those together, finds no memory.
  std::int64_t no_memory_at = 0;
  /// From this step on the device has failed.
  std::int64_t fails_at_step = 0;
  /// This step never ends: whoever waits for it or for what follows it is told so, at once.
  std::int64_t hangs_at_step = 0;
  /// This call of make_event() is refused.
  std::int64_t no_event_at = 0;
  /// This call of make_graph() and all that follow are refused.
  std::int64_t no_graph_from = 0;
  /// Which memory of others it refuses to be told of: 1 what is read, 2 what is written, 3 both.
  std::int64_t refuses_host_memory = 0;
  /// When this step is done, or the first one from it on that writes anything into the device's
  /// memory, a bit of what was written is another: which, `flip_seed` says (bit_flip).
  std::int64_t flips_bit_at_step = 0;
  std::uint64_t flip_seed = 0;
};

struct stand_in_settings {
  int devices = 1;
  std::size_t memory_bytes = std::size_t{1} << 30; ///< of each device
  thread_order order = thread_order::ascending;    ///< of the threads of a block
  std::uint64_t seed = 1;                 ///< of what is drawn: the lane that advances, seeded orders
  stand_in_faults faults{};               ///< of each device
  precision arithmetic = precision::fp32; ///< of a device; a module opens them as it is told
};

struct stand_in_counts {
  std::int64_t graphs = 0;       ///< that were put into a lane
  std::int64_t single_steps = 0; ///< of no graph
  /// Bytes copied from and to memory of the host that the device has neither allocated nor been
  /// told of for that, where a GPU takes a detour.
  std::size_t detour_bytes = 0;
};

/// A device whose lanes only move in finish(). Which of them does its next work is drawn: nothing
/// but events keeps one behind the other, so that a forgotten event gives wrong numbers. An upload
/// reads the host's memory when the lane comes to it. Memory begins as NaN.
///
/// A graph is what its steps put into a lane when it was made, put there again: with the arguments
/// that they had then.
///
/// All steps are computed to the bits of kernels/cpu where these are promised; products and
/// convolutions are plain loops, over factors that are rounded first where that is the precision.
class stand_in_device final : public device {
public:
  explicit stand_in_device(const stand_in_settings& settings);
  ~stand_in_device() override;

  device_properties properties() const override;
  precision arithmetic() const override { return settings_.arithmetic; }
  std::size_t free_bytes() const override;
  std::size_t library_bytes() const override { return scratch_; }
  result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  result<void*> allocate_host(std::size_t bytes) override;
  void release_host(void* memory) override;
  result<std::unique_ptr<host_registration>> register_host(std::span<const std::byte> memory,
                                                           host_access how) override;
  void upload(lane on, const void* from, void* to, std::size_t bytes) override;
  void download(lane on, const void* from, void* to, std::size_t bytes) override;
  void run(lane on, const step& what) override;
  result<std::unique_ptr<graph>> make_graph(lane on, std::span<const step> steps) override;
  void run(graph& what) override;
  result<std::unique_ptr<event>> make_event() override;
  void record(lane on, event& at) override;
  void wait(lane on, event& at) override;
  result<void> finish(event& at) override;
  result<void> finish(lane on) override;

  /// What it has been asked for so far.
  const stand_in_counts& counts() const { return counts_; }
  /// Whether nothing is in its lanes.
  bool is_idle() const { return lanes_[0].empty() && lanes_[1].empty(); }

private:
  class moment;
  class registration;
  struct registered_memory;
  class works_of_steps;
  using works = std::vector<std::function<void()>>;
  works works_of(stand_in_lane& where, const step& what);
  void put_step(stand_in_lane& where, const works& all);
  stand_in_lane& lane_of(lane on) { return lanes_[static_cast<std::size_t>(on)]; }
  result<void*> allocate_in(stand_in_memory& memory, std::size_t bytes);
  void copy(lane on, const void* from, void* to, std::size_t bytes, host_access how);
  stand_in_lane* draw_lane();
  template <class Done>
  result<void> advance_until(Done done);

  stand_in_settings settings_;
  std::mt19937_64 random_;
  std::array<stand_in_lane, 2> lanes_;
  stand_in_memory memory_, host_memory_;
  std::shared_ptr<registered_memory> registered_;
  bit_flip flip_;
  std::size_t used_ = 0, scratch_ = 0; ///< bytes; of scratch the most of a step
  std::int64_t allocations_ = 0, steps_ = 0, graphs_made_ = 0, events_made_ = 0;
  stand_in_counts counts_;
  std::optional<error> failed_;
};

/// Devices of one kind of setting.
class stand_in_module final : public device_module {
public:
  explicit stand_in_module(const stand_in_settings& settings)
      : settings_(settings) {}

  result<std::vector<device_properties>> devices() const override;
  result<std::unique_ptr<device>> open(int number, precision arithmetic) override;

private:
  const stand_in_settings settings_;
};

} // namespace dlrun::kernels::cuda
