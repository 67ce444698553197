#include "engine/layers/channel_order.hpp"
#include "engine/layers/layers.hpp"

#include <cmath>
#include <dlrun/check.hpp>
#include <dlrun/detail/named_factories.hpp>
#include <set>

namespace dlrun {
namespace {

detail::named_factories<layer_factory>& layer_types() {
  static detail::named_factories<layer_factory> all{"layer type"};
  return all;
}

} // namespace

result<void> register_layer(const std::string& type, layer_factory factory) {
  return layer_types().add(type, std::move(factory));
}

namespace engine {
namespace {

/// Gives an operation its records with channels first, as their shapes say.
class reordered_operation final : public operation {
public:
  reordered_operation(std::unique_ptr<operation> inner, const std::vector<shape>& inputs, const shape& output)
      : inner_(std::move(inner))
      , output_order_(output)
      , input_memory_(inputs.size())
      , gradient_memory_(inputs.size()) {
    for (const auto& input : inputs) input_orders_.emplace_back(input);
  }

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    inputs_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs_.push_back(input_orders_[i].to_first(now.batch, inputs[i], input_memory_[i]));
    if (output_order_.same()) return inner_->forward(now, inputs_, output);
    output_.resize(output.size());
    auto done = inner_->forward(now, inputs_, output_);
    if (done) output_order_.to_last(now.batch, output_, output);
    return done;
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs,
                std::span<const float> output, std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    std::vector<std::span<float>> gradients(input_gradients.begin(), input_gradients.end());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (input_orders_[i].same()) {
        inputs_[i] = inputs[i]; // not a copy: it may have moved since forward()
        continue;
      }
      if (gradients[i].empty()) continue;
      gradient_memory_[i].resize(gradients[i].size());
      gradients[i] = gradient_memory_[i];
    }
    inner_->backward(now, inputs_, output_order_.same() ? output : std::span<const float>{output_},
                     output_order_.to_first(now.batch, output_gradient, output_gradient_), gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!input_orders_[i].same() && !input_gradients[i].empty())
        input_orders_[i].to_last(now.batch, gradients[i], input_gradients[i]);
  }

  /// What is reordered is kept here.
  memory_use memory() const override {
    const auto own = inner_->memory();
    const bool inputs_as_they_are = std::ranges::any_of(input_orders_, &channel_order::same);
    return {.inputs_on_way_back = own.inputs_on_way_back && inputs_as_they_are,
            .output_on_way_back = own.output_on_way_back && output_order_.same()};
  }

private:
  std::unique_ptr<operation> inner_;
  std::vector<channel_order> input_orders_;
  channel_order output_order_;
  std::vector<std::vector<float>> input_memory_, gradient_memory_;
  std::vector<std::span<const float>> inputs_;
  std::vector<float> output_, output_gradient_;
};

class registered_layer final : public layer {
public:
  registered_layer(std::string name, std::vector<shape> inputs, std::unique_ptr<const custom_layer> own)
      : layer(std::move(name), std::move(inputs), own->output_shape())
      , own_(std::move(own)) {
    for (auto& tensor : own_->tensors()) add_tensor(std::move(tensor));
  }

  std::int64_t min_batch() const override { return own_->min_batch(); }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    auto made = own_->make_operation();
    DLRUN_CHECK(made != nullptr, "layer '{}': make_operation() made nothing", name());
    if (own_->any_order()) return made;
    return std::make_unique<reordered_operation>(std::move(made), input_shapes(), output_shape());
  }

private:
  std::unique_ptr<const custom_layer> own_;
};

/// What is wrong with a tensor that a layer says it brings; "" when nothing is.
std::string problem_of(const layer_tensor& tensor) {
  if (!detail::is_registrable(tensor.name)) return "must have a name of letters, digits, '.', '_', '-'";
  if (!element_count(tensor.extents))
    return fmt::format("has the impossible shape {}", to_string(tensor.extents));
  if (tensor.kind == tensor_kind::metric) return "must be a parameter or a buffer";
  if (!std::isfinite(tensor.low) || !std::isfinite(tensor.high) || tensor.low > tensor.high)
    return fmt::format("has initial values from {} to {}", tensor.low, tensor.high);
  if (tensor.kind == tensor_kind::buffer && !(tensor.momentum >= 0 && tensor.momentum <= 1))
    return fmt::format("has momentum {}, but must have one from 0 to 1", tensor.momentum);
  return {};
}

result<void> check_layer(const custom_layer& own, const std::string& name, const char* type) {
  if (own.output_shape().empty() || !element_count(own.output_shape()))
    return layer_error(name, type,
                       fmt::format("has the impossible output shape {}", to_string(own.output_shape())));
  if (own.min_batch() < 1)
    return layer_error(
        name, type, fmt::format("has a min_batch() of {}, but must have one of at least 1", own.min_batch()));
  std::set<std::string> names;
  for (const auto& tensor : own.tensors()) {
    if (const auto problem = problem_of(tensor); !problem.empty())
      return layer_error(name, type, fmt::format("its tensor '{}' {}", tensor.name, problem));
    if (!names.insert(tensor.name).second)
      return layer_error(name, type, fmt::format("has two tensors '{}'", tensor.name));
  }
  return {};
}

} // namespace

layer_result make_custom(const spec::Custom& spec, const std::string& name,
                         const std::vector<shape>& inputs) {
  const auto factory = layer_types().find(spec.type());
  if (!factory)
    return layer_error(
        name, "custom",
        fmt::format("no layer type '{}' is registered in this program, but: {}; run the one that brings it",
                    spec.type(), layer_types().names()));
  const layer_request request{name, inputs, {spec.options().begin(), spec.options().end()}};
  auto made =
      detail::call_factory(fmt::format("layer type '{}'", spec.type()), [&] { return (*factory)(request); });
  if (!made) return tl::unexpected(made.error());
  if (auto fine = check_layer(**made, name, spec.type().c_str()); !fine) return tl::unexpected(fine.error());
  return std::make_unique<registered_layer>(name, inputs, std::move(*made));
}

} // namespace engine
} // namespace dlrun
