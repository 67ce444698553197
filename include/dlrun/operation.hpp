/// Operations: a layer at work, forward and backward over one microbatch.
#pragma once

#include <dlrun/batch.hpp>

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/random.hpp>
#include <span>

namespace dlrun {

/// What all operations of one forward pass, and of its backward pass, are given.
struct pass {
  std::int64_t batch = 0;  ///< records
  bool training = true;    ///< false: use running statistics, and no dropout
  slot_key key;            ///< names the microbatch
  std::uint32_t layer = 0; ///< position of the layer in the model, for its random stream
  /// The layer's tensors, in the order of layer::tensors().
  std::span<const std::span<const float>> tensors;
  /// Memory for their gradients, in the same order; empty when no backward pass follows.
  std::span<const std::span<float>> gradients;

  /// The random numbers of this layer in this microbatch: the same in every worker, and again after
  /// a crash. An operation must not use any other source of randomness.
  random_stream random(random_purpose purpose = random_purpose::custom) const {
    return {key.seed, purpose, key.step, key.slot, layer};
  }
};

/// Which activations an operation needs in memory, and for how long. The fewer, the more
/// activations can share memory.
struct memory_use {
  bool inputs_on_way_back = true; ///< backward() reads `inputs`; false: they may hold anything by then
  bool output_on_way_back = true; ///< backward() reads `output`; false: it may hold anything by then
  /// forward() may be given the memory of inputs[0] for an `output` of the same size, and
  /// backward() that of `output_gradient` for input_gradients[0].
  bool in_place = false;
};

/// Computes a layer on one thread. Owns what backward() needs from forward(), and cached
/// primitives. Activations lie record by record: images as (height, width, channels), sequences as
/// (length, channels), vectors as they are. What an operation computes depends on its arguments
/// alone, never on addresses or on earlier passes.
class operation {
public:
  virtual ~operation() = default;

  /// Overwrites `output`. `inputs` has one span for each input of the layer, in their order. In
  /// training, a layer with running statistics overwrites its gradients with this microbatch's
  /// statistics. @returns bad_data for a value that the layer cannot take, naming layer, record and
  /// value.
  [[nodiscard]] virtual result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                                             std::span<float> output) = 0;

  /// Follows forward() of the same pass, with the same `inputs` and `output`. Overwrites the
  /// gradients of the parameters with sums over the records, and each of `input_gradients` that is
  /// not empty; an empty one is not wanted.
  virtual void backward(const pass& now, std::span<const std::span<const float>> inputs,
                        std::span<const float> output, std::span<const float> output_gradient,
                        std::span<const std::span<float>> input_gradients) = 0;

  /// Must always return the same value. The default is correct for every operation.
  virtual memory_use memory() const { return {}; }
};

} // namespace dlrun
