#include "engine/model.hpp"

#include "engine/graph.hpp"
#include <dlrun/random.hpp>

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <numbers>

namespace dlrun::engine {
namespace {

/// 256 GiB: a slip of the pen, whose list of blocks alone would take seconds to make.
constexpr std::uint64_t floats_max = std::uint64_t{1} << 36;

result<void> check_size(const std::vector<model_node>& nodes) {
  std::uint64_t floats = 0;
  for (const auto& node : nodes)
    for (const auto& tensor : node.layer->tensors()) {
      const auto size = element_count(tensor.extents);
      if (size) floats += static_cast<std::uint64_t>(*size);
      if (!size || floats > floats_max)
        return fail(error_code::bad_spec,
                    fmt::format("layer '{}': with its {} of shape {} the model has more than {} parameters, "
                                "the most that there can be; make it smaller",
                                node.layer->name(), tensor.name, to_string(tensor.extents), floats_max));
    }
  return {};
}

/// Numbers the nodes' tensors and lists them under the names that PyTorch's state_dict would give
/// them.
std::vector<tensor_info> collect_tensors(std::vector<model_node>& nodes) {
  std::vector<tensor_info> tensors;
  for (auto& node : nodes) {
    node.first_tensor = static_cast<std::uint32_t>(tensors.size());
    for (const auto& t : node.layer->tensors()) {
      tensor_info info;
      info.name = node.layer->name() + "." + t.name;
      info.extents = t.extents;
      info.kind = t.kind;
      info.momentum = t.momentum;
      tensors.push_back(std::move(info));
    }
  }
  return tensors;
}

/// values[i] is value_of(words, place) of element `first` + i of a tensor, where the element is the
/// one at `place` of four in its Philox block.
template <class ValueOf>
void fill_from(const random_stream& stream, std::uint64_t first, std::span<float> values, ValueOf value_of) {
  const auto end = first + values.size();
  for (auto block = first / 4; block * 4 < end; ++block) {
    const auto words = stream.words(block);
    const auto from = std::max(first, block * 4), to = std::min(end, block * 4 + 4);
    for (auto i = from; i < to; ++i) values[i - first] = value_of(words, static_cast<std::size_t>(i % 4));
  }
}

/// Uniform values in [low, high).
void fill_uniform(const random_stream& stream, float low, float high, std::uint64_t first,
                  std::span<float> values) {
  fill_from(stream, first, values, [&](const auto& words, std::size_t place) {
    return low + (high - low) * random_stream::uniform(words[place]);
  });
}

/// Standard normal values by Box and Muller 1958, in double: each block of Philox gives two pairs.
void fill_normal(const random_stream& stream, std::uint64_t first, std::span<float> values) {
  fill_from(stream, first, values, [](const auto& words, std::size_t place) {
    const std::size_t pair = place / 2 * 2;
    const double radius = std::sqrt(-2.0 * std::log((words[pair] + 1.0) * 0x1p-32)); // of (0, 1]
    const double angle = 2.0 * std::numbers::pi * (words[pair + 1] * 0x1p-32);
    return static_cast<float>(radius * (place == pair ? std::cos(angle) : std::sin(angle)));
  });
}

} // namespace

model::model(shape input, std::vector<model_node> nodes, std::unique_ptr<const engine::loss> loss,
             metric_set metrics, parameter_layout layout)
    : input_(std::move(input))
    , nodes_(std::move(nodes))
    , loss_(std::move(loss))
    , metrics_(std::move(metrics))
    , layout_(std::move(layout)) {
  for (const auto& node : nodes_)
    if (node.layer->min_batch() > min_batch_) {
      min_batch_ = node.layer->min_batch();
      min_batch_layer_ = node.layer->name();
    }
}

result<std::shared_ptr<const model>> model::build(const spec::ModelSpec& spec) {
  auto graph = build_graph(spec);
  if (!graph) return tl::unexpected<error>(graph.error());
  if (auto fits = check_size(graph->nodes); !fits) return tl::unexpected<error>(fits.error());
  const auto& output = graph->nodes.back().layer->output_shape();
  auto loss = make_loss(spec, output);
  if (!loss) return tl::unexpected<error>(loss.error());
  auto metrics = make_metrics(spec, output, **loss);
  if (!metrics) return tl::unexpected<error>(metrics.error());
  parameter_layout layout(collect_tensors(graph->nodes), metrics->floats());
  return std::shared_ptr<const model>(new model(std::move(graph->input), std::move(graph->nodes),
                                                std::move(*loss), std::move(*metrics), std::move(layout)));
}

std::vector<row_numbers> model::rows_read() const {
  std::vector<row_numbers> found;
  if (input_.size() != 1) return found;
  std::vector<std::optional<std::int64_t>> first_place(nodes_.size()); // of what a layer hands on
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto& layer = *nodes_[i].layer;
    const auto input = nodes_[i].inputs.front();
    const auto from = input == model_node::model_input ? std::optional(std::int64_t{0})
                                                       : first_place[static_cast<std::size_t>(input)];
    if (!from) continue;
    if (const auto first = layer.hands_on_from()) first_place[i] = *from + *first;
    if (layer.rows() > 0) found.push_back({*from, layer.input_size(), layer.rows(), layer.name()});
  }
  return found;
}

void model::initialise(std::uint64_t seed, std::span<float> flat) const {
  DLRUN_CHECK(flat.size() == layout_.flat_size(), "{} floats for a layout of {}", flat.size(),
              layout_.flat_size());
  initialise_part(seed, 0, flat);
}

void model::initialise_part(std::uint64_t seed, std::uint64_t first, std::span<float> out) const {
  const auto end = first + out.size();
  DLRUN_CHECK(end <= layout_.flat_size(), "floats [{}, {}) of a layout of {}", first, end,
              layout_.flat_size());
  std::fill(out.begin(), out.end(), 0.0F);
  for (const auto& node : nodes_) {
    std::uint32_t index = node.first_tensor;
    for (const auto& tensor : node.layer->tensors()) {
      const auto& info = layout_.tensors()[index];
      const random_stream stream{seed, random_purpose::initialiser, index, 0, 0};
      ++index;
      const auto from = std::max<std::uint64_t>(first, info.offset);
      const auto to = std::min<std::uint64_t>(end, info.offset + info.size);
      if (from >= to) continue;
      const auto values = out.subspan(from - first, to - from);
      if (tensor.normal)
        fill_normal(stream, from - info.offset, values);
      else if (tensor.low == tensor.high)
        std::fill(values.begin(), values.end(), tensor.low);
      else
        fill_uniform(stream, tensor.low, tensor.high, from - info.offset, values);
    }
  }
}

} // namespace dlrun::engine
