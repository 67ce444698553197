#include "kernels/cpu/cross_entropy.hpp"
#include "engine/losses/losses.hpp"

#include <cmath>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

constexpr const char* loss_name = "cross_entropy";

class cross_entropy_loss final : public loss {
public:
  cross_entropy_loss(std::int64_t classes, double label_smoothing, std::vector<double> weight)
      : classes_(classes)
      , label_smoothing_(label_smoothing)
      , weight_(std::move(weight)) {}

  std::string name() const override { return loss_name; }
  target_kind targets() const override { return target_kind::classes; }
  std::int64_t target_values() const override { return 1; }
  output_kind outputs() const override { return output_kind::class_scores; }
  loss_description describe() const override { return cross_entropy_description{label_smoothing_, weight_}; }

  std::optional<bad_target> find_bad(const batch& batch) const override {
    for (std::size_t i = 0; i < batch.classes.size(); ++i)
      if (batch.classes[i] < 0 || batch.classes[i] >= classes_)
        return bad_target{i, fmt::format("has the label {}, but the model has {} classes (labels 0 to {}); "
                                         "correct the data or the last layer",
                                         batch.classes[i], classes_, classes_ - 1)};
    return std::nullopt;
  }

  double forward(std::span<const float> outputs, const batch& batch,
                 std::span<float> gradient) const override {
    return kernels::cpu::cross_entropy(outputs, batch.classes, classes_, {label_smoothing_, weight_},
                                       gradient);
  }

private:
  std::int64_t classes_;
  double label_smoothing_;
  std::vector<double> weight_;
};

} // namespace

loss_result make_cross_entropy(const spec::CrossEntropy& spec, const std::string& layer,
                               const shape& output) {
  if (output.size() != 1)
    return loss_error(loss_name, fmt::format("takes class scores of shape [classes], but the last layer '{}' "
                                             "gives {}; end the model with flatten and linear",
                                             layer, to_string(output)));
  if (!(spec.label_smoothing() >= 0 && spec.label_smoothing() <= 1))
    return loss_error(loss_name,
                      fmt::format("label_smoothing {} is not from 0 to 1", spec.label_smoothing()));
  if (spec.weight_size() != 0 && spec.weight_size() != output.front())
    return loss_error(loss_name,
                      fmt::format("weight has {} values, but the last layer '{}' gives scores of {} "
                                  "classes; write one a class, or none",
                                  spec.weight_size(), layer, output.front()));
  for (const double one : spec.weight())
    if (!(one >= 0 && std::isfinite(one)))
      return loss_error(loss_name, fmt::format("the weight {} of a class is not from 0 on", one));
  return std::make_unique<cross_entropy_loss>(
      output.front(), spec.label_smoothing(),
      std::vector<double>(spec.weight().begin(), spec.weight().end()));
}

} // namespace dlrun::engine
