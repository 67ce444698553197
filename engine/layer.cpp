#include "engine/layer.hpp"

#include "engine/layers/layers.hpp"
#include "proto/field_rule.pb.h"

#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

std::int64_t checked_size(const shape& extents) {
  const auto count = element_count(extents);
  DLRUN_CHECK(count.has_value(), "shape {} was not checked", to_string(extents));
  return *count;
}

} // namespace

layer::layer(std::string name, std::vector<shape> inputs, shape output)
    : name_(std::move(name))
    , inputs_(std::move(inputs))
    , output_(std::move(output))
    , input_size_(checked_size(inputs_.at(0)))
    , output_size_(checked_size(output_)) {}

std::unique_ptr<operation> layer::make_joined_operation(std::span<const layer* const>, kernels::cpu::onednn&,
                                                        bool) const {
  return nullptr;
}

namespace {

const google::protobuf::FieldDescriptor* kind_field(const spec::LayerSpec& spec) {
  return spec.GetReflection()->GetOneofFieldDescriptor(spec, spec.GetDescriptor()->FindOneofByName("kind"));
}

} // namespace

std::string kind_of(const spec::LayerSpec& spec) {
  const auto* const field = kind_field(spec);
  return field ? field->name() : "";
}

input_count inputs_of(const spec::LayerSpec& spec) {
  const auto* const field = kind_field(spec);
  if (field == nullptr) return {};
  const auto& rule = field->options().GetExtension(spec::rule);
  return {rule.has_inputs_min() ? rule.inputs_min() : 1, rule.has_inputs_max() ? rule.inputs_max() : 1};
}

tl::unexpected<error> layer_error(const std::string& name, const char* kind, const std::string& what) {
  return fail(error_code::bad_spec, fmt::format("layer '{}' ({}): {}", name, kind, what));
}

tl::unexpected<error> image_error(const std::string& name, const char* kind, const shape& input) {
  return layer_error(
      name, kind,
      fmt::format("takes records of shape [channels, height, width], but gets {}; put it before flatten "
                  "and linear layers",
                  to_string(input)));
}

float initial_bound(std::int64_t fan_in) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

std::int64_t windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const std::int64_t room = extent + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

result<std::unique_ptr<layer>> make_layer(const spec::LayerSpec& spec, const std::string& name,
                                          const std::vector<shape>& inputs) {
  const auto count = inputs_of(spec);
  if (inputs.size() < count.min || inputs.size() > count.max)
    return layer_error(name, kind_of(spec).c_str(),
                       fmt::format("takes {}, but has {}; name them in inputs: [...]",
                                   count.max == 1 ? std::string("one input")
                                                  : fmt::format("{} to {} inputs", count.min, count.max),
                                   inputs.size()));
  const shape& input = inputs.front();
  switch (spec.kind_case()) {
  case spec::LayerSpec::kLinear: return make_linear(spec.linear(), name, input);
  case spec::LayerSpec::kConv2D: return make_conv2d(spec.conv2d(), name, input);
  case spec::LayerSpec::kMaxPool2D: return make_max_pool2d(spec.max_pool2d(), name, input);
  case spec::LayerSpec::kDropout: return make_dropout(spec.dropout(), name, input);
  case spec::LayerSpec::kBatchNorm: return make_batch_norm(spec.batch_norm(), name, input);
  case spec::LayerSpec::kRelu: return make_relu(name, input);
  case spec::LayerSpec::kFlatten: return make_flatten(name, input);
  case spec::LayerSpec::kAvgPool2D: return make_avg_pool2d(spec.avg_pool2d(), name, input);
  case spec::LayerSpec::kAdaptiveAvgPool2D:
    return make_adaptive_avg_pool2d(spec.adaptive_avg_pool2d(), name, input);
  case spec::LayerSpec::kConv1D: return make_conv1d(spec.conv1d(), name, input);
  case spec::LayerSpec::kConvTranspose2D: return make_conv_transpose2d(spec.conv_transpose2d(), name, input);
  case spec::LayerSpec::kReshape: return make_reshape(spec.reshape(), name, input);
  case spec::LayerSpec::kGelu: return make_gelu(spec.gelu(), name, input);
  case spec::LayerSpec::kSilu: return make_silu(name, input);
  case spec::LayerSpec::kSigmoid: return make_sigmoid(name, input);
  case spec::LayerSpec::kTanh: return make_tanh(name, input);
  case spec::LayerSpec::kLeakyRelu: return make_leaky_relu(spec.leaky_relu(), name, input);
  case spec::LayerSpec::kLayerNorm: return make_layer_norm(spec.layer_norm(), name, input);
  case spec::LayerSpec::kGroupNorm: return make_group_norm(spec.group_norm(), name, input);
  case spec::LayerSpec::kAdd: return make_add(name, inputs);
  case spec::LayerSpec::kMultiply: return make_multiply(name, inputs);
  case spec::LayerSpec::kConcat: return make_concat(name, inputs);
  case spec::LayerSpec::kSoftmax: return make_softmax(name, input);
  case spec::LayerSpec::kEmbedding: return make_embedding(spec.embedding(), name, input);
  case spec::LayerSpec::kSelect: return make_select(spec.select(), name, input);
  case spec::LayerSpec::kCustom: return make_custom(spec.custom(), name, inputs);
  case spec::LayerSpec::KIND_NOT_SET: break;
  }
  return fail(error_code::bad_spec,
              fmt::format("layer '{}' has no kind; name one, e.g. linear: {{out_features: 10}}", name));
}

} // namespace dlrun::engine
