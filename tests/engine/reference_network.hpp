/// The layers' forward passes in float64, written for plainness: what the engine's gradients are
/// held against.
#pragma once

#include "engine/model.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/batch.hpp>

#include <functional>
#include <string>
#include <vector>

namespace dlrun::engine::testing {

/// Computes a model in training mode with straightforward loops, images channels first. Shares no
/// code with the engine but the shapes, the graph, and the random words of dropout.
class reference_network {
public:
  explicit reference_network(const std::string& specification);

  /// Sum over the records of the loss. `parameters` in the model's flat layout.
  double loss(const std::vector<double>& parameters, const std::vector<double>& records,
              const std::vector<std::int32_t>& labels, const slot_key& key) const;

private:
  /// Activations of a microbatch: (batch, extents...).
  struct tensor {
    std::size_t batch = 0;
    shape extents;
    std::vector<double> values;
  };
  tensor apply(std::size_t position, const double* weights, const std::vector<const tensor*>& inputs,
               const slot_key& key) const;

  spec::ModelSpec spec_;
  std::shared_ptr<const model> model_;
};

} // namespace dlrun::engine::testing
