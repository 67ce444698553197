/// The seam to a device: what a CUDA module gives dlrun, and what stands in for it in tests.
#pragma once

#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::kernels::cuda {

/// The least that the kernels are compiled for: 8.0, as of the A100.
inline constexpr int compute_capability_min = 80;

/// What the bits depend on, and how large the device is.
struct device_properties {
  std::string name;           ///< e.g. "NVIDIA H100 80GB HBM3"
  int compute_capability = 0; ///< 90 for 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::string libraries; ///< with versions, e.g. "CUDA 13.0, cuDNN 9.13.1, cuBLASLt 13.1.0"
};

/// A queue of a device: what is asked of it happens in its order.
enum class lane : std::uint8_t {
  compute, ///< the model
  side     ///< copies beside that
};

/// A moment in a lane. Made by the device that it is used with, which outlives it.
class event {
public:
  virtual ~event() = default;
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
};

/// What a device does with memory of the host that others have made.
enum class host_access : std::uint8_t {
  read, ///< copies from it; the host may have mapped it read-only
  write ///< copies into it
};

/// Memory of the host that a device was told of. It may outlive the device, and be destroyed in any
/// thread: before the memory is unmapped, and while no copy of it is in a lane.
class host_registration {
public:
  virtual ~host_registration() = default;
  host_registration() = default;
  host_registration(const host_registration&) = delete;
  host_registration& operator=(const host_registration&) = delete;
};

/// Steps that a device has prepared: to put them all into a lane costs it about as much as to put
/// one. Made by the device that it is used with, which outlives it; it outlives what it put into a
/// lane.
class graph {
public:
  virtual ~graph() = default;
  graph() = default;
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
};

/// One device for one thread: memory, two lanes, libraries. Used by one thread at a time.
///
/// Calls that return nothing only put something into a lane. What goes wrong with them, then or
/// later, is the error of the next finish(), and of all that follow: a device that failed once is
/// of no use any more.
class device {
public:
  virtual ~device() = default;
  device() = default;
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  virtual device_properties properties() const = 0;
  /// As it was opened.
  virtual precision arithmetic() const = 0;
  /// Bytes that nobody has.
  virtual std::size_t free_bytes() const = 0;
  /// Bytes that steps so far have wanted to compute in, beside what is allocated here.
  virtual std::size_t library_bytes() const = 0;

  // ---- memory

  /// Of the device, of any content, aligned to 256 bytes. @returns limit_exceeded when there is
  /// none; never null, even for 0 bytes.
  virtual result<void*> allocate(std::size_t bytes) = 0;
  /// What allocate() gave, when nothing that uses it is in a lane.
  virtual void release(void* memory) = 0;
  /// Of the host, where copies need no detour: as allocate().
  virtual result<void*> allocate_host(std::size_t bytes) = 0;
  virtual void release_host(void* memory) = 0;
  /// Tells the device of memory of the host that it is to copy directly, as if it were of
  /// allocate_host(). @returns system, saying what the driver refuses; copies still work.
  virtual result<std::unique_ptr<host_registration>> register_host(std::span<const std::byte> memory,
                                                                   host_access how) = 0;
  /// From the host to the device. `from` may change after finish() of the lane.
  virtual void upload(lane on, const void* from, void* to, std::size_t bytes) = 0;
  /// From the device to the host. It is there after finish() of the lane.
  virtual void download(lane on, const void* from, void* to, std::size_t bytes) = 0;

  // ---- computation

  virtual void run(lane on, const step& what) = 0;

  /// Prepares steps for `on`, each of which has run there before: so that libraries have chosen
  /// how, and have the memory that they compute in. Nothing of them happens yet. They keep the
  /// arguments that they have now; what lies at their addresses is read when they run. @returns
  /// system or limit_exceeded, saying what the driver refuses: the steps can still be run one by
  /// one.
  virtual result<std::unique_ptr<graph>> make_graph(lane on, std::span<const step> steps) = 0;
  /// As run() of its steps in their order, in the lane that it was made for.
  virtual void run(graph& what) = 0;

  // ---- order

  virtual result<std::unique_ptr<event>> make_event() = 0;
  /// `at` becomes the moment when all that is in the lane now is done.
  virtual void record(lane on, event& at) = 0;
  /// What comes into the lane from now on waits for what `at` was when this is called.
  virtual void wait(lane on, event& at) = 0;
  /// Waits for that moment. @returns system when the device failed, or nothing moved for 10 s;
  /// limit_exceeded when a step found no memory to compute in.
  virtual result<void> finish(event& at) = 0;
  /// Waits for all that is in the lane. As finish(event).
  virtual result<void> finish(lane on) = 0;
};

/// The devices of a host. Thread-safe; outlives the devices that it opens.
class device_module {
public:
  virtual ~device_module() = default;
  device_module() = default;
  device_module(const device_module&) = delete;
  device_module& operator=(const device_module&) = delete;

  /// Those of this host, by number. @returns bad_usage naming what is missing (a driver, or one
  /// that is new enough) and the way out.
  virtual result<std::vector<device_properties>> devices() const = 0;
  /// @returns bad_usage for a device that is not there or too old (below 8.0), limit_exceeded or
  /// system otherwise.
  virtual result<std::unique_ptr<device>> open(int number, precision arithmetic) = 0;
};

/// Entry point of a module, of this name: its devices, or null when `build` is not the build that
/// it belongs to (kernels/cuda/module.hpp). Owned by the module.
using device_module_entry = device_module*(const char* build);

} // namespace dlrun::kernels::cuda
