/// From the specification of a model to its nodes: names, inputs, shapes.
#pragma once

#include "engine/model.hpp"

namespace dlrun::engine {

struct layer_graph {
  shape input;
  std::vector<model_node> nodes; ///< first_tensor not yet filled in
};

/// Resolves names and inputs and infers shapes. Errors as in model::build().
result<layer_graph> build_graph(const spec::ModelSpec& spec);

} // namespace dlrun::engine
