/// Layers of a program's own, which a job file uses as `{custom: {type: <name>}}`.
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

/// How a step updates a tensor of a model.
enum class tensor_kind : std::uint8_t {
  parameter, ///< trained by the optimizer
  buffer,    ///< running statistic of batch_norm: each slot sends its own, the PS shard takes the mean
  metric,    ///< loss and metrics: part of the gradient, so that the same tree sums them; never updated
};

/// A tensor of a layer, with its initial values: uniform in [low, high), or all `low` when `low`
/// and `high` are equal, or standard normal.
struct layer_tensor {
  std::string name; ///< "weight", "running_mean", ...; the model calls it "<layer>.<name>"
  shape extents;    ///< outermost first; the tensor has one float per element
  tensor_kind kind = tensor_kind::parameter; ///< parameter or buffer
  float low = 0;                             ///< least initial value
  float high = 0;                            ///< above all initial values, or equal to `low`
  float momentum = 0;                        ///< of a buffer: weight of the newest statistic, 0..1
  bool normal = false; ///< initial values are standard normal; low and high are not used
};

/// Describes a layer whose shapes are known, and makes the operations that compute it. Immutable
/// and thread-safe: one object serves all operations of a process.
class custom_layer {
public:
  virtual ~custom_layer() = default;
  custom_layer() = default;
  custom_layer(const custom_layer&) = delete;
  custom_layer& operator=(const custom_layer&) = delete;

  /// Shape of one record of the output, images channels first.
  virtual shape output_shape() const = 0;
  /// The tensors of the layer; pass::tensors has them in this order.
  virtual std::vector<layer_tensor> tensors() const { return {}; }
  /// Fewest records that a training microbatch may have.
  virtual std::int64_t min_batch() const { return 1; }
  /// True: operations get records of two or more dimensions as they lie in memory, channels
  /// innermost. That is faster, and correct where the position of a value does not matter. False:
  /// operations get records in the order of their shapes, channels first, as in PyTorch.
  virtual bool any_order() const { return false; }
  /// Makes the computation for one thread. The layer outlives it. @returns not null.
  virtual std::unique_ptr<operation> make_operation() const = 0;
};

/// What a layer_factory is asked to make.
struct layer_request {
  std::string name;          ///< of the layer, for error messages
  std::vector<shape> inputs; ///< shape of a record of each input, at least one
  option_map options;        ///< `options:` of the job file, as they stand there
};

/// Makes a layer. Called in every process of a run. @returns bad_spec naming the layer, the option
/// or the shapes, and the way out: the job is then refused before anything starts.
using layer_factory = std::function<result<std::unique_ptr<const custom_layer>>(const layer_request&)>;

/// Lets a job file use a layer of the program as `{custom: {type: <type>, options: {...}}}`.
/// Thread-safe. Call it at the beginning of main(), before run_role(): the processes of a run
/// execute the same program, and each makes the layer for itself. What the layer computes must
/// follow from its arguments alone, or a run is not repeatable. A type has 1 to 100 characters:
/// letters, digits, '.', '_', '-', with a letter or digit first.
/// @returns bad_usage when the type is taken or is no such name, or run_role() was called before.
result<void> register_layer(const std::string& type, layer_factory factory);

} // namespace dlrun
