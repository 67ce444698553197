/// The seam behind which a model computes: on a processor, or on a GPU (engine/cuda).
#pragma once

#include "engine/model.hpp"
#include <dlrun/batch.hpp>

#include <chrono>
#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// A vector of floats that a computer works on, in memory of the host or of a device. The computer
/// that made it outlives it.
class computer_vector {
public:
  virtual ~computer_vector() = default;
  computer_vector() = default;
  computer_vector(const computer_vector&) = delete;
  computer_vector& operator=(const computer_vector&) = delete;

  virtual std::size_t size() const = 0;
  /// The floats, if they lie in memory of the host; else empty.
  virtual std::span<float> host() = 0;
};

/// Computes gradients, metrics and outputs of one model on one thread. Owns activations and
/// whatever is made once per model. Used by one thread at a time. Results are a function of the
/// arguments and of fingerprint(), bit for bit: not of addresses, of earlier computations, of the
/// instance or of the process.
///
/// Calls take effect in order. A call that returns nothing may return before it is done; its error
/// is then that of the next call that returns a result.
class computer {
public:
  virtual ~computer() = default;
  computer() = default;
  computer(const computer&) = delete;
  computer& operator=(const computer&) = delete;

  // ---- vectors

  /// Makes a vector of `floats` floats of undefined content. @returns limit_exceeded when there is
  /// no memory for it.
  virtual result<std::unique_ptr<computer_vector>> make_vector(std::size_t floats) = 0;
  /// Makes a vector for `memory` of the host, which outlives the vector. A computer that can work
  /// in that memory does; any other works elsewhere, and copy() brings the floats. @returns as
  /// make_vector().
  virtual result<std::unique_ptr<computer_vector>> lend(std::span<float> memory) = 0;
  /// Floats [begin, end) become 0.
  virtual void clear(computer_vector& into, std::size_t begin, std::size_t end) = 0;
  /// Adds floats [begin, end) of `other` to those of `into`. Each sum is rounded once.
  virtual void add(computer_vector& into, computer_vector& other, std::size_t begin, std::size_t end) = 0;
  /// Copies the floats from `begin` on, as many as `to` has, to the host. Does nothing when `to` is
  /// the memory that they lie in.
  virtual result<void> copy(computer_vector& from, std::size_t begin, std::span<float> to) = 0;

  // ---- the model

  /// Says of memory that it will be read() again and again, or copied to: a device copies it then
  /// without a detour, if it can. It stays mapped until what is returned is destroyed, which may be
  /// in any thread and after the computer, but not during a call that uses the memory. Null where
  /// there is nothing to prepare.
  virtual std::shared_ptr<void> announce_parameters(std::span<const float> /*memory*/) { return nullptr; }
  virtual std::shared_ptr<void> announce_gradient(std::span<float> /*memory*/) { return nullptr; }

  /// Later calls compute from `parameters` (flat layout), those of `version`. The caller keeps them
  /// unchanged until the next read() or the end of the computer. The same version may come again
  /// with other parameters: nothing is cached by its number.
  virtual result<void> read(version_id version, std::span<const float> parameters) = 0;

  /// In how many parts a gradient is worth telling of: each costs the device an event, and whoever
  /// waits for it a waking.
  static constexpr std::uint64_t progress_parts_max = 4;
  /// Called during the backward pass: every float of the gradient from number `first_final` on is
  /// final. Numbers fall, and are above 0. It may be called only when as much is final as one of
  /// progress_parts_max equal parts. May be null.
  using progress = std::function<void(std::uint64_t first_final)>;
  /// OVERWRITES `gradient` (flat layout) as network::forward_backward() does. Errors as there.
  virtual result<void> forward_backward(const batch& batch, const slot_key& key, computer_vector& gradient,
                                        const progress& tell) = 0;
  /// Overwrites `metrics`, memory of the host, as network::evaluate() does. Errors as there.
  virtual result<void> evaluate(const batch& batch, std::span<float> metrics) = 0;
  /// Overwrites `outputs`, memory of the host, as network::predict() does. Errors as there.
  virtual result<void> predict(std::span<const float> records, std::int64_t size,
                               std::span<float> outputs) = 0;

  /// What the bits depend on besides the program and the arguments: libraries, hardware, threads.
  virtual std::string fingerprint() const = 0;
  /// Names of the layers that are computed on the processor although the others are not, between
  /// two copies.
  virtual std::vector<std::string> host_layers() const { return {}; }
  /// The time that those have taken so far, with their copies.
  virtual std::chrono::nanoseconds host_time() const { return {}; }
  /// What is to be said of how it works, since this was asked last: each a stable id, a colon and a
  /// text.
  virtual std::vector<std::string> take_remarks() { return {}; }
};

/// Makes a computer for `model` on the processor, with `threads` (at least 1) OpenMP threads per
/// microbatch. The bits depend on the number of threads.
std::unique_ptr<computer> make_computer(std::shared_ptr<const model> model, int threads);

} // namespace dlrun::engine
