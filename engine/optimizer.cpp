#include "engine/optimizer.hpp"

#include "kernels/cpu/update.hpp"
#include "proto/job_spec.pb.h"

#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// An error text when `value` is not in [0, 1) or, with `bounded` false, not in [0, inf).
std::string number_complaint(const char* optimizer, const char* argument, double value, bool bounded) {
  if (std::isfinite(value) && value >= 0 && (!bounded || value < 1)) return {};
  return fmt::format("optimizer {}: {} is {}, but must be {}", optimizer, argument, value,
                     bounded ? "at least 0 and below 1" : "a finite number, 0 or greater");
}

} // namespace

result<optimizer> optimizer::build(const spec::OptimizerSpec& spec) {
  optimizer built;
  std::string wrong;
  const auto require = [&](const std::string& text) { wrong = wrong.empty() ? text : wrong; };
  if (spec.has_sgd()) {
    const auto& sgd = spec.sgd();
    if (!sgd.has_lr())
      return fail(error_code::bad_spec, "optimizer sgd: lr is missing; write e.g. sgd: {lr: 0.05}");
    built.lr_ = sgd.lr();
    built.momentum_ = sgd.momentum();
    built.method_ = built.momentum_ == 0 ? method::sgd : method::momentum;
    require(number_complaint("sgd", "lr", built.lr_, false));
    require(number_complaint("sgd", "momentum", built.momentum_, false));
  } else if (spec.has_adam()) {
    const auto& adam = spec.adam();
    if (adam.betas_size() != 0 && adam.betas_size() != 2)
      return fail(error_code::bad_spec,
                  fmt::format("optimizer adam: betas has {} values, but must have 2, e.g. [0.9, 0.999]",
                              adam.betas_size()));
    built.method_ = method::adam;
    built.lr_ = adam.has_lr() ? adam.lr() : 1e-3;
    built.beta1_ = adam.betas_size() == 2 ? adam.betas(0) : 0.9;
    built.beta2_ = adam.betas_size() == 2 ? adam.betas(1) : 0.999;
    built.eps_ = adam.has_eps() ? adam.eps() : 1e-8;
    require(number_complaint("adam", "lr", built.lr_, false));
    require(number_complaint("adam", "betas[0]", built.beta1_, true));
    require(number_complaint("adam", "betas[1]", built.beta2_, true));
    require(number_complaint("adam", "eps", built.eps_, false));
  } else {
    require("no optimizer is named; write e.g. sgd: {lr: 0.05, momentum: 0.9}");
  }
  if (!wrong.empty()) return fail(error_code::bad_spec, wrong);
  return built;
}

std::uint32_t optimizer::state_floats_per_parameter() const {
  switch (method_) {
  case method::sgd: return 0;
  case method::momentum: return 1;
  case method::adam: return 2;
  }
  return 0;
}

void optimizer::update(step_id step, float scale, std::span<const float> gradient_sum,
                       std::span<const float> parameters_in, std::span<float> parameters_out,
                       std::span<float> state) const {
  const std::size_t size = parameters_out.size();
  DLRUN_CHECK(state.size() == size * state_floats_per_parameter(), "state of {} floats for {} parameters",
              state.size(), size);
  const auto lr = static_cast<float>(lr_);
  switch (method_) {
  case method::sgd: return kernels::cpu::sgd(lr, scale, gradient_sum, parameters_in, parameters_out);
  case method::momentum:
    return kernels::cpu::sgd_momentum(lr, static_cast<float>(momentum_), scale, gradient_sum, parameters_in,
                                      parameters_out, state);
  case method::adam: {
    const auto t = static_cast<double>(step.value) + 1;
    const kernels::cpu::adam_step constants{
        .beta1 = static_cast<float>(beta1_),
        .beta2 = static_cast<float>(beta2_),
        .one_minus_beta1 = static_cast<float>(1 - beta1_),
        .one_minus_beta2 = static_cast<float>(1 - beta2_),
        .step_size = static_cast<float>(lr_ / (1 - std::pow(beta1_, t))),
        .sqrt_bias_correction2 = static_cast<float>(std::sqrt(1 - std::pow(beta2_, t))),
        .eps = static_cast<float>(eps_),
    };
    return kernels::cpu::adam(constants, scale, gradient_sum, parameters_in, parameters_out,
                              state.first(size), state.last(size));
  }
  }
}

void update_buffer(float mean_scale, float momentum, std::span<const float> statistic_sum,
                   std::span<const float> in, std::span<float> out) {
  kernels::cpu::running_statistic(momentum, mean_scale, statistic_sum, in, out);
}

} // namespace dlrun::engine
