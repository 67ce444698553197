#include "engine/graph.hpp"

#include "proto/job_spec.pb.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace dlrun::engine {
namespace {

constexpr const char* input_name = "input";

/// The layer's name: as written, or its kind and its position from 0.
std::string name_of(const spec::LayerSpec& spec, int position) {
  return spec.name().empty() ? fmt::format("{}{}", kind_of(spec), position) : spec.name();
}

std::string known_names(const std::vector<model_node>& nodes) {
  std::string names = input_name;
  for (const auto& node : nodes) names += ", " + node.layer->name();
  return names;
}

/// Position of the layer called `wanted`, which the layer `name` reads.
result<std::int32_t> find_input(const spec::LayerSpec& spec, const std::string& name,
                                const std::string& wanted, const std::vector<model_node>& nodes) {
  if (wanted == input_name) return model_node::model_input;
  const auto found = std::ranges::find_if(nodes, [&](const auto& n) { return n.layer->name() == wanted; });
  if (found == nodes.end())
    return fail(error_code::bad_spec,
                fmt::format("layer '{}' ({}): its input '{}' is no layer before it; those are {}", name,
                            kind_of(spec), wanted, known_names(nodes)));
  return static_cast<std::int32_t>(found - nodes.begin());
}

/// Positions of the layers that `spec` reads: those it names, or the one before.
result<std::vector<std::int32_t>> find_inputs(const spec::LayerSpec& spec, const std::string& name,
                                              const std::vector<model_node>& nodes) {
  if (spec.inputs_size() == 0) return std::vector{static_cast<std::int32_t>(nodes.size()) - 1};
  std::vector<std::int32_t> found;
  for (const auto& wanted : spec.inputs()) {
    const auto input = find_input(spec, name, wanted, nodes);
    if (!input) return tl::unexpected<error>(input.error());
    found.push_back(*input);
  }
  return found;
}

result<model_node> build_node(const spec::LayerSpec& spec, int position, const layer_graph& before) {
  const auto name = name_of(spec, position);
  const auto taken = [&](const auto& n) { return n.layer->name() == name; };
  if (name == input_name || std::ranges::any_of(before.nodes, taken))
    return fail(error_code::bad_spec,
                fmt::format("layer {} is named '{}', which is taken; give it another name", position, name));
  auto inputs = find_inputs(spec, name, before.nodes);
  if (!inputs) return tl::unexpected<error>(inputs.error());
  std::vector<shape> shapes;
  for (const auto input : *inputs)
    shapes.push_back(input == model_node::model_input
                         ? before.input
                         : before.nodes[static_cast<std::size_t>(input)].layer->output_shape());
  auto made = make_layer(spec, name, shapes);
  if (!made) return tl::unexpected<error>(made.error());
  return model_node{std::move(*made), std::move(*inputs), 0};
}

/// Every layer but the last must be read: what nothing reads would be computed and trained for
/// nothing.
result<void> check_all_read(const std::vector<model_node>& nodes) {
  std::set<std::int32_t> read;
  for (const auto& node : nodes) read.insert(node.inputs.begin(), node.inputs.end());
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
    if (!read.contains(static_cast<std::int32_t>(i)))
      return fail(
          error_code::bad_spec,
          fmt::format(
              "layer '{}': no layer reads its output {}; name it in another layer's inputs or remove it",
              nodes[i].layer->name(), to_string(nodes[i].layer->output_shape())));
  return {};
}

} // namespace

result<layer_graph> build_graph(const spec::ModelSpec& spec) {
  layer_graph graph;
  graph.input.assign(spec.input().begin(), spec.input().end());
  if (graph.input.empty() || graph.input.size() > 3 || !element_count(graph.input))
    return fail(error_code::bad_spec,
                fmt::format("model input {} must be [features], [channels, length] or [channels, height, "
                            "width], all at least 1",
                            to_string(graph.input)));
  if (spec.layers().empty())
    return fail(error_code::bad_spec,
                "the model has no layers; name at least one, e.g. linear: {out_features: 10}");
  for (int position = 0; position < spec.layers_size(); ++position) {
    auto node = build_node(spec.layers(position), position, graph);
    if (!node) return tl::unexpected<error>(node.error());
    graph.nodes.push_back(std::move(*node));
  }
  if (auto read = check_all_read(graph.nodes); !read) return tl::unexpected<error>(read.error());
  return graph;
}

} // namespace dlrun::engine
