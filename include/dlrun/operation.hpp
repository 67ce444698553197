/// A layer at work: forward and backward over one microbatch.
#pragma once

#include <dlrun/batch.hpp>

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/random.hpp>
#include <span>

namespace dlrun {

/// What all operations of one forward (and backward) pass know.
struct pass {
  std::int64_t batch = 0;  ///< records
  bool training = true;    ///< false: running statistics, no dropout
  slot_key key;            ///< which microbatch
  std::uint32_t layer = 0; ///< position of the layer, for its random stream
  /// The layer's tensors, in the order of layer::tensors().
  std::span<const std::span<const float>> tensors;
  /// Where their gradients go, same order; empty when there is no backward pass to come.
  std::span<const std::span<float>> gradients;

  /// The random numbers of this layer in this microbatch: the same for whoever computes it, and
  /// again after a crash. Nothing else that is random may have a part in what an operation
  /// computes.
  random_stream random(random_purpose purpose = random_purpose::custom) const {
    return {key.seed, purpose, key.step, key.slot, layer};
  }
};

/// What an operation needs of the memory of activations. The less that is, the more of them share
/// memory.
struct memory_use {
  bool inputs_on_way_back = true; ///< backward() reads `inputs`; if not, they may hold anything there
  bool output_on_way_back = true; ///< backward() reads `output`; if not, it may hold anything there
  /// forward() may be given the memory of inputs[0] for an `output` of the same size, and
  /// backward() that of `output_gradient` for input_gradients[0].
  bool in_place = false;
};

/// A layer's computation on one thread. Owns what backward needs from forward, and cached
/// primitives. Activations hold record behind record; an image has its channels innermost (height,
/// width, channels), a sequence too (length, channels), a vector is plain. What an operation
/// computes depends on its arguments alone, never on addresses or on earlier passes.
class operation {
public:
  virtual ~operation() = default;

  /// Writes `output` (=). `inputs` are as many as layer::input_shapes(), in that order. In
  /// training, a layer with running statistics writes this microbatch's own into its gradients (=).
  /// Fails with bad_data on values that the layer cannot take, naming the layer, the record and the
  /// value.
  [[nodiscard]] virtual result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                                             std::span<float> output) = 0;

  /// Follows forward() of the same pass, with the same `inputs` and `output`. Writes the
  /// parameters' gradients, summed over the records (=), and each of `input_gradients` (=) that is
  /// not empty; an empty one is not wanted.
  virtual void backward(const pass& now, std::span<const std::span<const float>> inputs,
                        std::span<const float> output, std::span<const float> output_gradient,
                        std::span<const std::span<float>> input_gradients) = 0;

  /// The same whenever it is asked. What the defaults say is always right.
  virtual memory_use memory() const { return {}; }
};

} // namespace dlrun
