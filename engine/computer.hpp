/// The seam behind which a model computes: on a processor, and later on a GPU or in another
/// language.
#pragma once

#include "engine/model.hpp"
#include <dlrun/batch.hpp>

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// Floats that a computer works on, wherever they lie. Belongs to the computer that made it, which
/// outlives it.
class computer_vector {
public:
  virtual ~computer_vector() = default;
  computer_vector() = default;
  computer_vector(const computer_vector&) = delete;
  computer_vector& operator=(const computer_vector&) = delete;

  virtual std::size_t size() const = 0;
  /// The floats, where the host can reach them; empty where it cannot.
  virtual std::span<float> host() = 0;
};

/// One model on one thread. Owns activations and all that is made once for a model; used by one
/// thread at a time. What it computes is a function of the arguments and of fingerprint(), bit for
/// bit: not of addresses, of what was computed before, of the instance or of the process.
///
/// Calls take effect in their order. Those that return nothing may only be begun when they return;
/// what goes wrong with them is the error of the next call that returns one.
class computer {
public:
  virtual ~computer() = default;
  computer() = default;
  computer(const computer&) = delete;
  computer& operator=(const computer&) = delete;

  // ---- vectors

  /// `floats` floats of any value. @returns limit_exceeded when there is no memory for them.
  virtual result<std::unique_ptr<computer_vector>> make_vector(std::size_t floats) = 0;
  /// A vector for `memory` of the host, which outlives it. A computer that can work there does; any
  /// other works elsewhere, and copy() brings the floats. @returns as make_vector().
  virtual result<std::unique_ptr<computer_vector>> lend(std::span<float> memory) = 0;
  /// Floats [begin, end) become 0.
  virtual void clear(computer_vector& into, std::size_t begin, std::size_t end) = 0;
  /// Floats [begin, end): into += other. Each sum is rounded once.
  virtual void add(computer_vector& into, computer_vector& other, std::size_t begin, std::size_t end) = 0;
  /// Brings the floats from `begin` on, as many as `to` has, to the host. Nothing to do where `to`
  /// is the memory that they lie in.
  virtual result<void> copy(computer_vector& from, std::size_t begin, std::span<float> to) = 0;

  // ---- the model

  /// What follows computes from `parameters` (flat layout), those of `version`, which stay as they
  /// are until the next read() or the end. Of the same version they may be others: nothing is
  /// remembered by its number.
  virtual result<void> read(version_id version, std::span<const float> parameters) = 0;

  /// Told on the way back: every float of the gradient from this one on is what it will be at the
  /// end. Numbers fall, and are above 0. May be null.
  using progress = std::function<void(std::uint64_t first_final)>;
  /// OVERWRITES `gradient` (flat layout), as network::forward_backward() says, with its errors.
  virtual result<void> forward_backward(const batch& batch, const slot_key& key, computer_vector& gradient,
                                        const progress& tell) = 0;
  /// Overwrites `metrics`, of the host, as network::evaluate() says, with its errors.
  virtual result<void> evaluate(const batch& batch, std::span<float> metrics) = 0;
  /// Overwrites `outputs`, of the host, as network::predict() says, with its errors.
  virtual result<void> predict(std::span<const float> records, std::int64_t size,
                               std::span<float> outputs) = 0;

  /// What the bits depend on besides the program and the arguments: libraries, hardware, threads.
  virtual std::string fingerprint() const = 0;
  /// Names of the layers that are computed on the processor although the others are not, with a
  /// copy there and back.
  virtual std::vector<std::string> host_layers() const { return {}; }
};

/// A computer for `model` on this machine, with `threads` (at least 1) OpenMP threads a microbatch,
/// which are part of what fixes the bits.
std::unique_ptr<computer> make_computer(std::shared_ptr<const model> model, int threads);

} // namespace dlrun::engine
