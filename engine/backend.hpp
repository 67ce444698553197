/// Where a network computes: on the processor, or on a device whose memory the host cannot reach.
#pragma once

#include "engine/activations.hpp"
#include "engine/layer.hpp"

#include <cstdint>
#include <dlrun/batch.hpp>
#include <dlrun/error.hpp>
#include <dlrun/operation.hpp>
#include <functional>
#include <memory>
#include <span>

namespace dlrun::engine {

/// An operation of a backend: forward() and backward() are those of dlrun::operation, over
/// activations of the backend. Tensors and gradients of the pass are floats in its memory.
/// backward() may write over `output_gradient`, which nobody else reads then.
class backend_operation {
public:
  virtual ~backend_operation() = default;
  backend_operation() = default;
  backend_operation(const backend_operation&) = delete;
  backend_operation& operator=(const backend_operation&) = delete;

  [[nodiscard]] virtual result<void> forward(const pass& now, std::span<const activations> inputs,
                                             activations output) = 0;
  virtual void backward(const pass& now, std::span<const activations> inputs, activations output,
                        activations output_gradient, std::span<const activations> input_gradients) = 0;
  virtual memory_use memory() const = 0;
};

/// Memory, operations and loss of one network, on one thread. Spans of floats are memory of the
/// backend unless a line says otherwise: what an operation of another backend cannot read. Calls
/// take effect in their order; those that return nothing may only be begun when they return, and
/// what goes wrong with them is the error of a later call, at the latest of finish().
class backend {
public:
  virtual ~backend() = default;
  backend() = default;
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

  /// The operation that computes a layer, which outlives it.
  virtual std::unique_ptr<backend_operation> make_operation(const layer& layer, bool input_gradient) = 0;
  /// As layer::make_joined_operation() of `last`.
  virtual std::unique_ptr<backend_operation>
  make_joined_operation(const layer& last, std::span<const layer* const> before, bool input_gradient) = 0;

  /// Begins a pass with memory for so many numbers of activations, of any content. What the last
  /// call gave is gone. @returns limit_exceeded when there is no memory for them.
  virtual result<activations> begin(std::size_t numbers) = 0;
  /// Records of the host, where operations read them, until the next begin().
  virtual result<activations> bring(std::span<const float> records) = 0;
  /// Records of the host into `to`, each transposed: what is (rows, columns) becomes (columns,
  /// rows).
  virtual result<void> bring_transposed(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                        std::span<const float> records, activations to) = 0;
  /// sum += part. Each sum is rounded once.
  virtual void add(activations part, activations sum) = 0;
  /// All floats become 0.
  virtual void clear(std::span<float> floats) = 0;

  /// Of a batch that the loss takes: writes its gradient by the outputs (=), unless `gradient` is
  /// empty, and the metrics tensor (=), by finish() at the latest. `metrics` is memory of the host
  /// where `gradient` is empty.
  virtual result<void> loss(activations outputs, const batch& batch, activations gradient,
                            std::span<float> metrics) = 0;
  /// Brings activations to the host, as floats: they are there by finish() at the latest.
  virtual result<void> fetch(activations from, std::span<float> to) = 0;

  /// Told of a pass on its way back: all floats from this one on are what they will be at the end.
  using progress = std::function<void(std::uint64_t first_final)>;
  /// The way back has come so far; `tell` hears of it now, or in finish().
  virtual void reached(std::uint64_t first_final, const progress& tell) = 0;
  /// Ends the pass: all that it computes is there. @returns bad_data for a value that a layer
  /// cannot take, where its operation could not say so; system when the device failed.
  virtual result<void> finish(const progress& tell) = 0;
};

} // namespace dlrun::engine
