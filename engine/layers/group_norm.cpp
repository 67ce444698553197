#include "kernels/cpu/group_norm.hpp"

#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::group_geometry;

class group_norm_operation final : public operation {
public:
  group_norm_operation(const group_geometry& geometry, bool affine)
      : geometry_(geometry)
      , affine_(affine) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    mean_.resize(static_cast<std::size_t>(now.batch * geometry_.groups));
    inverse_deviation_.resize(mean_.size());
    kernels::cpu::group_norm(
        geometry_, now.batch, inputs[0], affine_ ? now.tensors[0] : std::span<const float>(),
        affine_ ? now.tensors[1] : std::span<const float>(), output, mean_, inverse_deviation_);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    kernels::cpu::group_norm_backward(geometry_, now.batch, inputs[0], mean_, inverse_deviation_,
                                      affine_ ? now.tensors[0] : std::span<const float>(), output_gradient,
                                      affine_ ? now.gradients[0] : std::span<float>(),
                                      affine_ ? now.gradients[1] : std::span<float>(), input_gradients[0]);
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  group_geometry geometry_;
  bool affine_;
  std::vector<float> mean_, inverse_deviation_;
};

class group_norm_layer final : public layer {
public:
  group_norm_layer(std::string name, const shape& input, std::int64_t groups, float eps, bool affine)
      : layer(std::move(name), {input}, input)
      , geometry_{input_size() / input[0], input[0], groups, eps}
      , affine_(affine) {
    if (!affine) return;
    add_tensor({"weight", {input[0]}, tensor_kind::parameter, 1, 1});
    add_tensor({"bias", {input[0]}, tensor_kind::parameter, 0, 0});
  }

  layer_description describe() const override { return group_norm_description{geometry_, affine_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<group_norm_operation>(geometry_, affine_);
  }

private:
  group_geometry geometry_;
  bool affine_;
};

} // namespace

layer_result make_group_norm(const spec::GroupNorm& spec, const std::string& name, const shape& input) {
  const double eps = spec.has_eps() ? spec.eps() : 1e-5;
  const std::int64_t groups = spec.num_groups();
  if (!(eps > 0 && eps <= 1))
    return layer_error(name, "group_norm", fmt::format("eps is {}, but must be above 0 and at most 1", eps));
  if (groups < 1)
    return layer_error(name, "group_norm", fmt::format("num_groups is {}, but must be at least 1", groups));
  if (input[0] % groups != 0)
    return layer_error(name, "group_norm",
                       fmt::format("cannot cut the {} channels of its input {} into num_groups {}; take a "
                                   "divisor",
                                   input[0], to_string(input), groups));
  return std::make_unique<group_norm_layer>(name, input, groups, static_cast<float>(eps),
                                            !spec.has_affine() || spec.affine());
}

} // namespace dlrun::engine
