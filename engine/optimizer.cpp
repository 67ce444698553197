#include "engine/optimizer.hpp"

#include "kernels/cpu/update.hpp"
#include "proto/job_spec.pb.h"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::engine {

using kernels::cpu::gradient_terms;

// ---- from the specification

/// Reads the arguments of one kind, with PyTorch's defaults, and remembers the first that is out of
/// range.
class optimizer::builder {
public:
  explicit builder(const char* kind)
      : kind_(kind) {}

  double at_least_0(const char* argument, double value) {
    if (!std::isfinite(value) || value < 0) complain(argument, value, "a finite number, 0 or greater");
    if (value > 0 && static_cast<float>(value) == 0)
      complain(argument, value, "0, or a number that is not 0 in float");
    return value;
  }
  double below_1(const char* argument, double value) {
    if (!std::isfinite(value) || value < 0 || value >= 1) complain(argument, value, "at least 0 and below 1");
    return value;
  }
  double up_to_1(const char* argument, double value) {
    if (!std::isfinite(value) || value < 0 || value > 1) complain(argument, value, "a number from 0 to 1");
    return value;
  }
  void require(bool holds, const std::string& otherwise) {
    if (!holds && wrong_.empty()) wrong_ = fmt::format("optimizer {}: {}", kind_, otherwise);
  }

  result<optimizer> take(double lr, decltype(optimizer::rule_) rule) {
    if (!wrong_.empty()) return fail(error_code::bad_spec, wrong_);
    optimizer built;
    built.lr_ = lr;
    built.rule_ = rule;
    return built;
  }

  result<optimizer> sgd(const spec::Sgd& spec) {
    require(spec.has_lr(), "lr is missing; write e.g. sgd: {lr: 0.05}");
    const sgd_rule rule{at_least_0("momentum", spec.momentum()), up_to_1("dampening", spec.dampening()),
                        at_least_0("weight_decay", spec.weight_decay()), spec.nesterov()};
    require(!rule.nesterov || (rule.momentum > 0 && rule.dampening == 0),
            "nesterov needs a momentum above 0 and a dampening of 0");
    return take(at_least_0("lr", spec.lr()), rule);
  }

  template <class Spec>
  result<optimizer> adam(const Spec& spec, double weight_decay, bool decoupled) {
    require(spec.betas_size() == 0 || spec.betas_size() == 2,
            fmt::format("betas has {} values, but must have 2, e.g. [0.9, 0.999]", spec.betas_size()));
    const bool has_betas = spec.betas_size() == 2;
    const adam_rule rule{
        below_1("betas[0]", has_betas ? spec.betas(0) : 0.9),
        below_1("betas[1]", has_betas ? spec.betas(1) : 0.999),
        at_least_0("eps", spec.has_eps() ? spec.eps() : 1e-8),
        at_least_0("weight_decay", spec.has_weight_decay() ? spec.weight_decay() : weight_decay),
        spec.amsgrad(),
        decoupled};
    return take(at_least_0("lr", spec.has_lr() ? spec.lr() : 1e-3), rule);
  }

  result<optimizer> adagrad(const spec::Adagrad& spec) {
    const adagrad_rule rule{at_least_0("lr_decay", spec.lr_decay()),
                            at_least_0("weight_decay", spec.weight_decay()),
                            at_least_0("initial_accumulator_value", spec.initial_accumulator_value()),
                            at_least_0("eps", spec.has_eps() ? spec.eps() : 1e-10)};
    return take(at_least_0("lr", spec.has_lr() ? spec.lr() : 1e-2), rule);
  }

  result<optimizer> rmsprop(const spec::RmsProp& spec) {
    const rmsprop_rule rule{up_to_1("alpha", spec.has_alpha() ? spec.alpha() : 0.99),
                            at_least_0("eps", spec.has_eps() ? spec.eps() : 1e-8),
                            at_least_0("weight_decay", spec.weight_decay()),
                            at_least_0("momentum", spec.momentum()), spec.centered()};
    return take(at_least_0("lr", spec.has_lr() ? spec.lr() : 1e-2), rule);
  }

private:
  void complain(const char* argument, double value, const char* expected) {
    require(false, fmt::format("{} is {}, but must be {}", argument, value, expected));
  }

  const char* kind_;
  std::string wrong_;
};

result<optimizer> optimizer::build(const spec::OptimizerSpec& spec) {
  switch (spec.kind_case()) {
  case spec::OptimizerSpec::kSgd: return builder{"sgd"}.sgd(spec.sgd());
  case spec::OptimizerSpec::kAdam: return builder{"adam"}.adam(spec.adam(), 0, false);
  case spec::OptimizerSpec::kAdamw: return builder{"adamw"}.adam(spec.adamw(), 1e-2, true);
  case spec::OptimizerSpec::kAdagrad: return builder{"adagrad"}.adagrad(spec.adagrad());
  case spec::OptimizerSpec::kRmsprop: return builder{"rmsprop"}.rmsprop(spec.rmsprop());
  case spec::OptimizerSpec::KIND_NOT_SET: break;
  }
  return fail(error_code::bad_spec, "no optimizer is named; write e.g. sgd: {lr: 0.05, momentum: 0.9}");
}

// ---- state

std::vector<std::string_view> optimizer::state_planes() const {
  std::vector<std::string_view> planes;
  if (const auto* sgd = std::get_if<sgd_rule>(&rule_)) {
    if (sgd->momentum != 0) planes = {"momentum_buffer"};
  } else if (const auto* adam = std::get_if<adam_rule>(&rule_)) {
    planes = {"exp_avg", "exp_avg_sq"};
    if (adam->amsgrad) planes.push_back("max_exp_avg_sq");
  } else if (std::holds_alternative<adagrad_rule>(rule_)) {
    planes = {"sum"};
  } else {
    const auto& rmsprop = std::get<rmsprop_rule>(rule_);
    planes = {"square_avg"};
    if (rmsprop.centered) planes.push_back("grad_avg");
    if (rmsprop.momentum != 0) planes.push_back("momentum_buffer");
  }
  return planes;
}

void optimizer::start_state(std::span<float> state) const {
  const auto* adagrad = std::get_if<adagrad_rule>(&rule_);
  std::ranges::fill(state, adagrad ? static_cast<float>(adagrad->initial_accumulator_value) : 0.0F);
}

// ---- updates

/// One call of update(), for each kind of rule.
struct optimizer::call {
  const update_terms& terms;
  gradient_terms gradient;
  std::span<const float> sum, in;
  std::span<float> out;
  kernels::cpu::update_state state;

  kernels::cpu::output_store store() const {
    return terms.streams ? kernels::cpu::output_store::streamed : kernels::cpu::output_store::cached;
  }
  kernels::cpu::update_state plane(std::size_t number) const {
    return state.subspan(number * out.size(), out.size());
  }

  bool operator()(const sgd_rule& rule) const {
    const auto lr = static_cast<float>(terms.lr);
    const auto decay = static_cast<float>(rule.weight_decay);
    if (rule.momentum == 0) return kernels::cpu::sgd(lr, decay, gradient, sum, in, out, store());
    const double weight = terms.step.value == 0 ? 1 : 1 - rule.dampening;
    return kernels::cpu::sgd_momentum(
        {lr, static_cast<float>(rule.momentum), static_cast<float>(weight), decay, rule.nesterov}, gradient,
        sum, in, out, state, store());
  }

  bool operator()(const adam_rule& rule) const {
    const auto t = static_cast<double>(terms.step.value) + 1;
    const kernels::cpu::adam_step constants{
        .beta1 = static_cast<float>(rule.beta1),
        .beta2 = static_cast<float>(rule.beta2),
        .one_minus_beta1 = static_cast<float>(1 - rule.beta1),
        .one_minus_beta2 = static_cast<float>(1 - rule.beta2),
        .step_size = static_cast<float>(terms.lr / (1 - std::pow(rule.beta1, t))),
        .sqrt_bias_correction2 = static_cast<float>(std::sqrt(1 - std::pow(rule.beta2, t))),
        .eps = static_cast<float>(rule.eps),
        .weight_decay = rule.decoupled ? 0.0F : static_cast<float>(rule.weight_decay),
        .keep = rule.decoupled ? static_cast<float>(1 - terms.lr * rule.weight_decay) : 1.0F,
    };
    return kernels::cpu::adam(constants, gradient, sum, in, out, plane(0), plane(1),
                              rule.amsgrad ? plane(2) : kernels::cpu::update_state{}, store());
  }

  bool operator()(const adagrad_rule& rule) const {
    const auto lr = terms.lr / (1 + static_cast<double>(terms.step.value) * rule.lr_decay);
    return kernels::cpu::adagrad(
        {static_cast<float>(lr), static_cast<float>(rule.eps), static_cast<float>(rule.weight_decay)},
        gradient, sum, in, out, state, store());
  }

  bool operator()(const rmsprop_rule& rule) const {
    std::size_t next = 1;
    const auto mean = rule.centered ? plane(next++) : kernels::cpu::update_state{};
    const auto velocity = rule.momentum != 0 ? plane(next) : kernels::cpu::update_state{};
    const kernels::cpu::rmsprop_step constants{
        .lr = static_cast<float>(terms.lr),
        .alpha = static_cast<float>(rule.alpha),
        .one_minus_alpha = static_cast<float>(1 - rule.alpha),
        .eps = static_cast<float>(rule.eps),
        .weight_decay = static_cast<float>(rule.weight_decay),
        .momentum = static_cast<float>(rule.momentum),
    };
    return kernels::cpu::rmsprop(constants, gradient, sum, in, out, plane(0), mean, velocity, store());
  }
};

bool optimizer::update(const update_terms& terms, std::span<const float> gradient_sum,
                       std::span<const float> parameters_in, std::span<float> parameters_out,
                       const kernels::cpu::update_state& state) const {
  const std::size_t size = parameters_out.size();
  DLRUN_CHECK(state.size() == size * state_floats_per_parameter(), "state of {} floats for {} parameters",
              state.size(), size);
  const gradient_terms gradient{terms.scale, terms.limit, terms.coefficient};
  return std::visit(call{terms, gradient, gradient_sum, parameters_in, parameters_out, state}, rule_);
}

bool update_buffer(float mean_scale, float momentum, std::span<const float> statistic_sum,
                   std::span<const float> in, std::span<float> out) {
  return kernels::cpu::running_statistic(momentum, mean_scale, statistic_sum, in, out);
}

} // namespace dlrun::engine
