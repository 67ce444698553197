// Layers and metrics that a program registers.
#include "engine/network.hpp"
#include "tests/engine/spec_builder.hpp"

#include <dlrun/layer.hpp>
#include <dlrun/metric.hpp>
#include <gmock/gmock.h>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace dlrun::engine {
namespace {

using ::testing::HasSubstr;
using floats = std::vector<float>;

/// y[place] = weight[place] * x[place], the places of a record counted in the order of its shape:
/// which weight meets which value tells in which order records come.
class place_weights final : public custom_layer {
public:
  struct arguments {
    shape output;
    std::vector<layer_tensor> tensors;
    bool any_order = false;
    std::int64_t min_batch = 1;
  };
  explicit place_weights(arguments given)
      : given_(std::move(given)) {}

  shape output_shape() const override { return given_.output; }
  std::vector<layer_tensor> tensors() const override { return given_.tensors; }
  std::int64_t min_batch() const override { return given_.min_batch; }
  bool any_order() const override { return given_.any_order; }
  std::unique_ptr<operation> make_operation() const override { return std::make_unique<multiplication>(); }

private:
  class multiplication final : public operation {
  public:
    result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                         std::span<float> output) override {
      const auto weights = now.tensors[0];
      for (std::size_t i = 0; i < output.size(); ++i) output[i] = weights[i % weights.size()] * inputs[0][i];
      return {};
    }
    void backward(const pass& now, std::span<const std::span<const float>> inputs,
                  std::span<const float> output, std::span<const float> output_gradient,
                  std::span<const std::span<float>> input_gradients) override {
      const auto weights = now.tensors[0];
      std::ranges::fill(now.gradients[0], 0.0F);
      for (std::size_t i = 0; i < output.size(); ++i) {
        EXPECT_EQ(output[i], weights[i % weights.size()] * inputs[0][i]); // what forward() saw and made
        now.gradients[0][i % weights.size()] += output_gradient[i] * inputs[0][i];
        if (!input_gradients[0].empty())
          input_gradients[0][i] = output_gradient[i] * weights[i % weights.size()];
      }
    }
  };

  arguments given_;
};

layer_tensor weight(shape extents) {
  return {.name = "weight", .extents = std::move(extents), .low = 1, .high = 1};
}

result<std::unique_ptr<const custom_layer>> make_place_weights(const layer_request& request) {
  if (auto fine = check_options(request.options, {"any_order"}, request.name); !fine)
    return tl::unexpected(fine.error());
  const auto any = number_option(request.options, "any_order", 0, request.name);
  if (!any) return tl::unexpected(any.error());
  const auto& input = request.inputs.front();
  return std::make_unique<place_weights>(place_weights::arguments{input, {weight(input)}, *any == 1});
}

/// Registered once for all tests of this program.
const bool registered = [] {
  EXPECT_TRUE(register_layer("place_weights", make_place_weights));
  EXPECT_TRUE(
      register_layer("throws", [](const layer_request&) -> result<std::unique_ptr<const custom_layer>> {
        throw std::runtime_error("out of ideas");
      }));
  EXPECT_TRUE(
      register_layer("nothing", [](const layer_request&) -> result<std::unique_ptr<const custom_layer>> {
        return nullptr;
      }));
  return true;
}();

/// The layer `own`, as the specification says it.
std::string own(const std::string& kind) { return "layers { name: 'own' " + kind + " } "; }

/// The outputs of a 1x1 convolution (so that activations are images), the layer, and flatten.
floats outputs_of(const std::string& layer) {
  const auto m = testing::build_model(
      "input: [2, 2, 2] layers { name: 'first' conv2d { out_channels: 3 kernel_size: 1 bias: false } } " +
      own(layer) +
      "layers { name: 'flat' flatten {} } layers { name: 'last' linear { out_features: 12 bias: false } }");
  floats parameters(m->layout().flat_size());
  const auto tensor = [&](const std::string& name) {
    const auto* const info = m->layout().find(name);
    return std::span{parameters}.subspan(info->offset, info->size);
  };
  const floats kernel = {1, 0, 0, 1, 1, 1}; // channels x, y, x + y
  std::ranges::copy(kernel, tensor("first.weight").begin());
  const auto weights = tensor("own.weight");
  std::iota(weights.begin(), weights.end(), 1.0F);
  const auto identity = tensor("last.weight");
  for (std::size_t i = 0; i < 12; ++i) identity[i * 12 + i] = 1;
  network n(m, 1);
  floats outputs(12);
  EXPECT_TRUE(n.predict(parameters, floats{1, 2, 3, 4, 10, 20, 30, 40}, 1, outputs));
  return outputs;
}

TEST(custom_layer, gets_images_in_the_order_of_their_shape) {
  EXPECT_EQ(outputs_of("custom { type: 'place_weights' }"),
            (floats{1 * 1, 2 * 2, 3 * 3, 4 * 4, 5 * 10, 6 * 20, 7 * 30, 8 * 40, 9 * 11, 10 * 22, 11 * 33,
                    12 * 44}));
}

TEST(custom_layer, gets_images_as_they_lie_when_it_takes_any_order) {
  const auto got = outputs_of("custom { type: 'place_weights' options { key: 'any_order' value: '1' } }");
  EXPECT_EQ(got[0], 1 * 1); // the first pixel's channels are its first three values
  EXPECT_EQ(got[4], 2 * 10);
  EXPECT_EQ(got[8], 3 * 11);
}

/// The gradient of `name` in a model with the layer between convolutions, where nothing hides an
/// order.
floats gradient_of(const std::string& layer, const std::string& name) {
  const auto m = testing::build_model(
      "input: [2, 3, 3] layers { name: 'first' conv2d { out_channels: 4 kernel_size: 2 } } " + own(layer) +
      "layers { name: 'second' conv2d { out_channels: 2 kernel_size: 2 } } layers { name: 'flat' flatten {} "
      "}");
  floats parameters(m->layout().flat_size());
  for (const auto* const one : {"first.weight", "first.bias", "own.weight", "second.weight", "second.bias"}) {
    const auto* const info = m->layout().find(one);
    for (std::uint64_t i = 0; info != nullptr && i < info->size; ++i)
      parameters[info->offset + i] =
          one == std::string{"own.weight"} ? 1.0F : static_cast<float>((i * 5) % 11) / 8 - 0.5F;
  }
  floats records(2 * 18);
  for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<float>(i % 7) - 3;
  network n(m, 1);
  floats gradient(parameters.size());
  const std::vector<std::int32_t> classes{0, 1};
  EXPECT_TRUE(n.forward_backward(parameters, {records, classes, {}, 2}, {1, 2, 3}, gradient));
  const auto* const info = m->layout().find(name);
  return {gradient.begin() + static_cast<std::ptrdiff_t>(info->offset),
          gradient.begin() + static_cast<std::ptrdiff_t>(info->offset + info->size)};
}

TEST(custom_layer, passes_gradients_on_in_the_order_of_the_layers_around_it) {
  for (const auto* const name : {"first.weight", "first.bias", "second.weight"}) // all its weights are 1
    EXPECT_EQ(gradient_of("custom { type: 'place_weights' }", name),
              gradient_of("leaky_relu { negative_slope: 1 }", name))
        << name;
}

/// What is said of a model that is refused; "" when it is not.
std::string complaint_about(const std::string& model_text) {
  const auto made = model::build(testing::parse<spec::ModelSpec>(model_text));
  return made ? "" : made.error().message;
}
std::string refusal_of(const std::string& custom) {
  return complaint_about("input: [3] " + own("custom { " + custom + " }") +
                         "layers { name: 'last' linear { out_features: 2 } }");
}

TEST(custom_layer, an_unknown_type_is_refused_with_those_that_there_are) {
  EXPECT_THAT(refusal_of("type: 'swich'"),
              HasSubstr("layer 'own' (custom): no layer type 'swich' is registered in this program, but: "));
  EXPECT_THAT(refusal_of("type: 'swich'"), HasSubstr("place_weights"));
}

TEST(custom_layer, options_that_it_does_not_know_or_cannot_read_are_refused) {
  EXPECT_THAT(refusal_of("type: 'place_weights' options { key: 'any' value: '1' }"),
              HasSubstr("own: there is no option 'any'; there are any_order"));
  for (const std::string wrong : {"1yes", "01", "-00", "+1", ""})
    EXPECT_THAT(refusal_of("type: 'place_weights' options { key: 'any_order' value: '" + wrong + "' }"),
                HasSubstr("own: option 'any_order' is '" + wrong + "', which is no number"));
}

TEST(custom_layer, a_factory_that_throws_or_makes_nothing_is_an_error) {
  EXPECT_THAT(refusal_of("type: 'throws'"),
              HasSubstr("the factory of layer type 'throws' threw: out of ideas"));
  EXPECT_THAT(refusal_of("type: 'nothing'"), HasSubstr("the factory of layer type 'nothing' made nothing"));
}

TEST(custom_layer, what_it_says_of_itself_is_checked) {
  struct wrong {
    const char* type;
    place_weights::arguments says;
    const char* complaint;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<wrong> all{
      {"w-shape", {{0}, {}}, "impossible output shape [0]"},
      {"w-no-shape", {{}, {}}, "impossible output shape []"},
      {"w-batch", {{3}, {}, false, 0}, "has a min_batch() of 0"},
      {"w-name", {{3}, {{.name = "a b", .extents = {1}}}}, "its tensor 'a b' must have a name"},
      {"w-extents", {{3}, {{.name = "a", .extents = {-1}}}}, "its tensor 'a' has the impossible shape [-1]"},
      {"w-range", {{3}, {{.name = "a", .extents = {1}, .low = 2, .high = 1}}}, "initial values from 2 to 1"},
      {"w-nan", {{3}, {{.name = "a", .extents = {1}, .low = nan, .high = 1}}}, "initial values from nan"},
      {"w-metric",
       {{3}, {{.name = "a", .extents = {1}, .kind = tensor_kind::metric}}},
       "must be a parameter or a buffer"},
      {"w-momentum",
       {{3}, {{.name = "a", .extents = {1}, .kind = tensor_kind::buffer, .momentum = 2}}},
       "has momentum 2"},
      {"w-twice", {{3}, {weight({1}), weight({1})}}, "has two tensors 'weight'"},
  };
  for (const auto& one : all) {
    ASSERT_TRUE(
        register_layer(one.type, [&one](const layer_request&) -> result<std::unique_ptr<const custom_layer>> {
          return std::make_unique<place_weights>(one.says);
        }));
    EXPECT_THAT(refusal_of(fmt::format("type: '{}'", one.type)), HasSubstr(one.complaint)) << one.type;
  }
}

TEST(custom_layer, a_type_is_registered_once_under_a_name) {
  EXPECT_THAT(register_layer("place_weights", make_place_weights).error().message,
              HasSubstr("there is a layer type 'place_weights' already"));
  EXPECT_FALSE(register_layer("no name", make_place_weights));
  EXPECT_FALSE(register_layer("empty", {}));
}

// ---- metrics

/// How many records there were, times `options.factor`.
class counting final : public metric {
public:
  counting(std::string name, float factor)
      : name_(std::move(name))
      , factor_(factor) {}
  std::string name() const override { return name_; }
  std::size_t floats() const override { return 1; }
  void add(std::span<const float>, const batch& batch, std::span<float> sums) const override {
    sums[0] += factor_ * static_cast<float>(batch.size);
  }
  double value(std::span<const double> sums) const override { return sums[0]; }

private:
  std::string name_;
  float factor_;
};

result<std::unique_ptr<const metric>> make_counting(const metric_request& request) {
  const auto factor = number_option(request.options, "factor", 1.0F, "metric counting");
  if (!factor) return tl::unexpected(factor.error());
  return std::make_unique<counting>(fmt::format("counting_{}", request.width), *factor);
}

const bool metrics_registered = [] {
  EXPECT_TRUE(register_metric("counting", make_counting));
  EXPECT_TRUE(register_metric("unnamed", [](const metric_request&) -> result<std::unique_ptr<const metric>> {
    return std::make_unique<counting>("", 1.0F);
  }));
  return true;
}();

TEST(custom_metric, is_computed_beside_the_others) {
  const auto m = testing::build_model(
      "input: [2] layers { name: 'last' linear { out_features: 3 } } metrics { accuracy {} } "
      "metrics { custom { type: 'counting' options { key: 'factor' value: '2' } } }");
  floats sums(m->metrics().floats());
  const std::vector<std::int32_t> classes{0, 1};
  m->metrics().add(floats{1, 0, 0, 1, 0, 0}, {{}, classes, {}, 2}, sums);
  const std::vector<double> total(sums.begin(), sums.end());
  EXPECT_EQ(m->metrics().values(total), (named_values{{"accuracy", 0.5}, {"counting_3", 4.0}}));
}

TEST(custom_metric, is_refused_when_it_is_unknown_or_has_no_name) {
  const auto complaint = [](const std::string& type) {
    return complaint_about(
        "input: [2] layers { name: 'last' linear { out_features: 3 } } metrics { custom { type: '" + type +
        "' } }");
  };
  EXPECT_THAT(complaint("countink"),
              HasSubstr("no metric 'countink' is registered in this program, but: counting"));
  EXPECT_THAT(complaint("unnamed"), HasSubstr("its name() '' must be of letters"));
}

} // namespace
} // namespace dlrun::engine
