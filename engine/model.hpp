/// The model of a job: a graph of layers with known shapes, its loss and metrics, and the layout of
/// its tensors.
#pragma once

#include "engine/layer.hpp"
#include "engine/loss.hpp"
#include "engine/metrics.hpp"
#include "engine/parameter_layout.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::spec {
class ModelSpec;
}

namespace dlrun::engine {

/// A layer in its graph. `inputs` are the positions of the layers it reads, or `model_input`; at
/// least one, and one may occur twice.
struct model_node {
  static constexpr std::int32_t model_input = -1;

  std::unique_ptr<const engine::layer> layer;
  std::vector<std::int32_t> inputs;
  std::uint32_t first_tensor = 0; ///< in the layout; layer->tensors().size() of them
};

/// Values of a record that are numbers of rows: those at the places [first, first + count).
struct row_numbers {
  std::int64_t first = 0, count = 0;
  std::int64_t rows = 0; ///< they are below this
  std::string layer;     ///< the embedding that reads them

  friend bool operator==(const row_numbers&, const row_numbers&) = default;
};

/// Immutable; share it by shared_ptr<const model>. Two models of one specification are equal in
/// every respect: layout, blocks and initial values follow from the specification alone.
class model {
public:
  /// Errors (bad_spec) name the layer, the shapes and the way out: an unknown input, a shape that
  /// does not fit, an argument out of range, a layer that nothing reads, a last layer whose output
  /// the loss or a metric does not take.
  static result<std::shared_ptr<const model>> build(const spec::ModelSpec& spec);

  const parameter_layout& layout() const { return layout_; }
  const shape& input_shape() const { return input_; }
  /// Shape of the last layer's output for one record: [classes] or [values].
  const shape& output_shape() const { return nodes_.back().layer->output_shape(); }
  /// What training makes small, and what is told of its outcome.
  const engine::loss& loss() const { return *loss_; }
  const metric_set& metrics() const { return metrics_; }
  /// In order of computation: a node reads only nodes before it. The last one gives the outputs.
  const std::vector<model_node>& nodes() const { return nodes_; }

  /// Fewest records a training microbatch may have, and the layer that asks for it ("" when that is
  /// 1).
  std::int64_t min_batch() const { return min_batch_; }
  const std::string& min_batch_layer() const { return min_batch_layer_; }

  /// Of a model whose input is a vector: which of its values embeddings read as they are.
  std::vector<row_numbers> rows_read() const;

  /// Writes the initial values into `flat` (layout().flat_size() floats; padding and metrics zero).
  /// Counter-based: a function of seed, tensor and element.
  void initialise(std::uint64_t seed, std::span<float> flat) const;
  /// The floats [first, first + out.size()) of that: any part is computed alone, on any thread.
  void initialise_part(std::uint64_t seed, std::uint64_t first, std::span<float> out) const;

private:
  model(shape input, std::vector<model_node> nodes, std::unique_ptr<const engine::loss> loss,
        metric_set metrics, parameter_layout layout);

  shape input_;
  std::vector<model_node> nodes_;
  std::unique_ptr<const engine::loss> loss_;
  metric_set metrics_;
  parameter_layout layout_;
  std::int64_t min_batch_ = 1;
  std::string min_batch_layer_;
};

} // namespace dlrun::engine
