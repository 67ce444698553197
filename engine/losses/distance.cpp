// Losses that compare each output with a number. All but bce_with_logits take any finite number.
#include "kernels/cpu/distance.hpp"
#include "engine/losses/losses.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::distance_kind;

class distance_loss final : public loss {
public:
  distance_loss(const char* name, output_kind outputs, std::int64_t values, distance_description what)
      : name_(name)
      , outputs_(outputs)
      , values_(values)
      , what_(std::move(what)) {}

  std::string name() const override { return name_; }
  target_kind targets() const override { return target_kind::values; }
  std::int64_t target_values() const override { return values_; }
  output_kind outputs() const override { return outputs_; }
  loss_description describe() const override { return what_; }

  std::optional<bad_target> find_bad(const batch& batch) const override {
    const bool probabilities = outputs_ == output_kind::logits;
    const auto allowed = [&](float value) {
      return std::isfinite(value) && (!probabilities || (value >= 0 && value <= 1));
    };
    const auto wrong = std::ranges::find_if_not(batch.values, allowed);
    if (wrong == batch.values.end()) return std::nullopt;
    const auto place = wrong - batch.values.begin();
    return bad_target{static_cast<std::size_t>(place / values_),
                      fmt::format("has the target {} (value {} of {}), but the loss {} takes {}; correct the "
                                  "data or choose another loss",
                                  *wrong, place % values_, values_, name_,
                                  probabilities ? "numbers from 0 to 1" : "finite numbers")};
  }

  double forward(std::span<const float> outputs, const batch& batch,
                 std::span<float> gradient) const override {
    const auto width = static_cast<std::size_t>(values_);
    switch (what_.kind) {
    case distance_kind::bce_with_logits:
      return kernels::cpu::bce_with_logits(outputs, batch.values, width, what_.pos_weight, gradient);
    case distance_kind::mse: return kernels::cpu::mse(outputs, batch.values, width, gradient);
    case distance_kind::l1: return kernels::cpu::l1(outputs, batch.values, width, gradient);
    case distance_kind::huber:
      return kernels::cpu::huber(outputs, batch.values, width, what_.delta, gradient);
    }
    DLRUN_CHECK(false, "distance {} is none", static_cast<int>(what_.kind));
  }

private:
  const char* name_;
  output_kind outputs_;
  std::int64_t values_;
  distance_description what_;
};

loss_result make(const char* name, output_kind outputs, const std::string& layer, const shape& output,
                 distance_description what) {
  if (output.size() != 1)
    return loss_error(name, fmt::format("takes outputs of shape [values], but the last layer '{}' gives {}; "
                                        "end the model with flatten, or with flatten and linear",
                                        layer, to_string(output)));
  return std::make_unique<distance_loss>(name, outputs, output.front(), std::move(what));
}

} // namespace

loss_result make_bce_with_logits(const spec::BceWithLogits& spec, const std::string& layer,
                                 const shape& output) {
  constexpr const char* name = "bce_with_logits";
  const std::vector<double> weight(spec.pos_weight().begin(), spec.pos_weight().end());
  if (weight.size() > 1 && output.size() == 1 && spec.pos_weight_size() != output.front())
    return loss_error(name, fmt::format("pos_weight has {} values, but the last layer '{}' gives {} outputs; "
                                        "write one for all, or one an output",
                                        weight.size(), layer, output.front()));
  for (const double one : weight)
    if (!(one >= 0 && std::isfinite(one)))
      return loss_error(name, fmt::format("the pos_weight {} is not from 0 on", one));
  return make(name, output_kind::logits, layer, output,
              {.kind = distance_kind::bce_with_logits, .pos_weight = weight});
}

loss_result make_mse(const std::string& layer, const shape& output) {
  return make("mse", output_kind::values, layer, output, {.kind = distance_kind::mse});
}

loss_result make_l1(const std::string& layer, const shape& output) {
  return make("l1", output_kind::values, layer, output, {.kind = distance_kind::l1});
}

loss_result make_huber(const spec::Huber& spec, const std::string& layer, const shape& output) {
  const double delta = spec.has_delta() ? spec.delta() : 1;
  if (!(delta > 0 && std::isfinite(delta)))
    return loss_error("huber", fmt::format("delta {} is not above 0", delta));
  return make("huber", output_kind::values, layer, output, {.kind = distance_kind::huber, .delta = delta});
}

} // namespace dlrun::engine
