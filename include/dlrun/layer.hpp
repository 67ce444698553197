/// Layers of a program's own: what a job file uses as `{custom: {type: <name>}}`.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/operation.hpp>
#include <dlrun/options.hpp>
#include <dlrun/shape.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlrun {

/// What becomes of a tensor of a model when a step is applied.
enum class tensor_kind : std::uint8_t {
  parameter, ///< trained by the optimizer
  buffer,    ///< running statistic of batch_norm: each slot contributes its own, the PS shard takes the mean
  metric,    ///< loss and metrics; rides in the gradient, so that the same tree reduces it; never updated
};

/// A tensor that a layer brings, with its initial values: uniform in [low, high), or `low` where
/// both are equal, or standard normal.
struct layer_tensor {
  std::string name; ///< "weight", "running_mean", ...; the model's name for it is "<layer>.<name>"
  shape extents;    ///< outermost first; with as many floats
  tensor_kind kind = tensor_kind::parameter; ///< parameter or buffer
  float low = 0;                             ///< least initial value
  float high = 0;                            ///< above all initial values, or equal to `low`
  float momentum = 0;                        ///< of a buffer: weight of the newest statistic, 0..1
  bool normal = false; ///< initial values are standard normal; low and high are not used
};

/// A layer whose shapes are known. Immutable and thread-safe: one object serves all operations of a
/// process.
class custom_layer {
public:
  virtual ~custom_layer() = default;
  custom_layer() = default;
  custom_layer(const custom_layer&) = delete;
  custom_layer& operator=(const custom_layer&) = delete;

  /// Shape of one record of the output, images channels first.
  virtual shape output_shape() const = 0;
  /// The tensors it brings; pass::tensors has them in this order.
  virtual std::vector<layer_tensor> tensors() const { return {}; }
  /// Fewest records that a training microbatch may have.
  virtual std::int64_t min_batch() const { return 1; }
  /// Whether its operations take records with two or more dimensions as they lie in memory,
  /// channels innermost: right, and faster, where the place of a value does not matter. Otherwise
  /// they are given records in the order of their shapes, channels first, as in PyTorch.
  virtual bool any_order() const { return false; }
  /// The computation, for one thread; the layer outlives it. @returns not null.
  virtual std::unique_ptr<operation> make_operation() const = 0;
};

/// What a layer is made for.
struct layer_request {
  std::string name;          ///< of the layer, for error messages
  std::vector<shape> inputs; ///< of the records that it reads, at least one
  option_map options;        ///< `options:` of the job file, as they stand
};

/// Makes a layer. @returns bad_spec naming the layer, the option or the shapes, and the way out:
/// the job is then refused before anything starts.
using layer_factory = std::function<result<std::unique_ptr<const custom_layer>>(const layer_request&)>;

/// Makes `{custom: {type: <type>, options: {...}}}` in a job file a layer of the program's own.
/// Thread-safe. To be called at the beginning of main(), before run_role(): the processes of a run
/// execute the same program, and each makes the layer for itself. What the layer computes must
/// follow from its arguments alone, or a run is not repeatable. A type is a name of letters,
/// digits, '.', '_', '-'.
/// @returns bad_usage when the name is taken or is none, or run_role() was called before.
result<void> register_layer(const std::string& type, layer_factory factory);

} // namespace dlrun
