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
  case spec::LayerSpec::KIND_NOT_SET: break;
  }
  return fail(error_code::bad_spec,
              fmt::format("layer '{}' has no kind; name one, e.g. linear: {{out_features: 10}}", name));
}

} // namespace dlrun::engine
