/// A model at work on one compute thread.
#pragma once

#include "engine/model.hpp"
#include <dlrun/batch.hpp>

#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <span>

namespace dlrun::engine {

class backend;

/// Computes gradients, metrics and outputs of a model on a backend. Owns activations and cached
/// primitives; one per compute thread, used by one thread at a time. Results are a function of the
/// arguments and of the number of threads, bit for bit: not of addresses, of earlier computations,
/// of the instance or of the process.
class network {
public:
  /// On the processor, with `threads` OpenMP threads per microbatch, at least 1. The bits depend on
  /// their number.
  network(std::shared_ptr<const model> model, int threads);
  /// On `backend`, which this network alone uses. Parameters and gradients are then in the memory
  /// of the backend; records, targets, metrics of evaluate() and outputs are in memory of the host.
  network(std::shared_ptr<const model> model, std::unique_ptr<backend> backend);
  ~network();
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// OVERWRITES `gradient` (flat layout) with, for parameters, the SUM over the records of d loss /
  /// d parameter; for buffers, this microbatch's own statistic (mean; unbiased variance); for
  /// metrics, loss sum, records, sums of the model's metric_set; padding zero. Errors, before
  /// anything is written: bad_data for a target that the loss does not take (loss::check);
  /// bad_usage for a batch whose size is below model::min_batch() or does not fit its spans. Later,
  /// so that `gradient` is undefined: bad_data for a value that a layer cannot take, such as an
  /// index that an embedding does not have; system: oneDNN failed.
  [[nodiscard]] result<void> forward_backward(std::span<const float> parameters, const batch& batch,
                                              const slot_key& key, std::span<float> gradient) {
    return forward_backward(parameters, batch, key, gradient, nullptr);
  }
  /// Called during the backward pass, from the last layer to the first: every float of `gradient`
  /// from number `first_final` on is final. Numbers fall, and are above 0. May be null.
  using progress = std::function<void(std::uint64_t first_final)>;
  [[nodiscard]] result<void> forward_backward(std::span<const float> parameters, const batch& batch,
                                              const slot_key& key, std::span<float> gradient,
                                              const progress& tell);

  /// Overwrites `metrics` (layout().metrics().size floats, same places as the metrics tensor) with
  /// those of `batch` under running statistics and without dropout. Errors as above; a batch may
  /// have any size from 1.
  [[nodiscard]] result<void> evaluate(std::span<const float> parameters, const batch& batch,
                                      std::span<float> metrics);

  /// Overwrites `outputs` (size, output_shape...) with what the last layer gives for `size` (from 1)
  /// records (size, input_shape...), images channels first, under running statistics and without
  /// dropout: scores before the softmax or sigmoid that a loss applies. The same bits as in
  /// evaluate() of the same records. Errors as above, but for targets, which it does not have.
  [[nodiscard]] result<void> predict(std::span<const float> parameters, std::span<const float> records,
                                     std::int64_t size, std::span<float> outputs);

  /// Floats of activations and their gradients that a pass of forward_backward() has in memory, for
  /// each record. What operations keep for themselves is not in it.
  std::size_t activation_floats() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace dlrun::engine
