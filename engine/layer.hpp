/// A layer of a model: its shapes and tensors, and how to make the operation that computes it.
#pragma once

#include "engine/layer_description.hpp"
#include "engine/parameter_layout.hpp"

#include <dlrun/error.hpp>
#include <dlrun/layer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlrun::spec {
class LayerSpec;
}
namespace dlrun::kernels::cpu {
struct convolution_geometry;
struct onednn;
} // namespace dlrun::kernels::cpu

namespace dlrun::engine {

/// Immutable description of a layer whose shapes are known. Thread-safe.
class layer {
public:
  /// `inputs`: shapes of the records that it reads, at least one.
  layer(std::string name, std::vector<shape> inputs, shape output);
  virtual ~layer() = default;
  layer(const layer&) = delete;
  layer& operator=(const layer&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<shape>& input_shapes() const { return inputs_; }
  /// Of a layer that reads one input.
  const shape& input_shape() const { return inputs_.front(); }
  const shape& output_shape() const { return output_; }
  /// Floats of one record; of the first input.
  std::int64_t input_size() const { return input_size_; }
  std::int64_t output_size() const { return output_size_; }
  const std::vector<layer_tensor>& tensors() const { return tensors_; }
  /// Fewest records a training microbatch may have.
  virtual std::int64_t min_batch() const { return 1; }

  /// The computation on a CPU thread. `context` must outlive it; the layer must too.
  /// `input_gradient`: whether backward() will be asked for that of any input; a layer that reads
  /// the model's input alone is not.
  virtual std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context,
                                                    bool input_gradient) const = 0;

  /// What it computes, where dlrun has that on devices too.
  virtual layer_description describe() const { return host_description{}; }

  /// Of an embedding: how many rows it has, whose numbers it reads. 0 for any other layer.
  virtual std::int64_t rows() const { return 0; }
  /// Of a layer that reads a vector and hands on some of its values as they are: the first of their
  /// places, which follow each other. nullopt for any other layer.
  virtual std::optional<std::int64_t> hands_on_from() const { return std::nullopt; }

  /// Whether its output is its only input, float for float as activations lie: nothing needs to be
  /// computed.
  virtual bool is_identity() const { return false; }
  /// Whether it is max(x, 0).
  virtual bool is_relu() const { return false; }
  /// Of a convolution of images; null of any other layer.
  virtual const kernels::cpu::convolution_geometry* convolution() const { return nullptr; }
  /// One operation for the layers `before`, each of which reads the one before it alone, and then
  /// this one, which reads the last of them alone; it reads what the first reads, and its tensors
  /// are those of all. Null where there is none that is cheaper than one after the other.
  virtual std::unique_ptr<operation> make_joined_operation(std::span<const layer* const> before,
                                                           kernels::cpu::onednn& context,
                                                           bool input_gradient) const;

protected:
  void add_tensor(layer_tensor tensor) { tensors_.push_back(std::move(tensor)); }

private:
  std::string name_;
  std::vector<shape> inputs_;
  shape output_;
  std::int64_t input_size_, output_size_;
  std::vector<layer_tensor> tensors_;
};

/// Kind of the layer as the specification names it, e.g. "conv2d"; "" when none is set.
std::string kind_of(const spec::LayerSpec& spec);

/// How many inputs a layer of that kind reads, as the schema says (FieldRule.inputs_min and
/// inputs_max).
struct input_count {
  std::uint32_t min = 1, max = 1;
};
input_count inputs_of(const spec::LayerSpec& spec);

/// The layer that `spec` describes, on records of the shapes `inputs`. Errors name `name`, the
/// kind, the shapes and the way out.
result<std::unique_ptr<layer>> make_layer(const spec::LayerSpec& spec, const std::string& name,
                                          const std::vector<shape>& inputs);

} // namespace dlrun::engine
