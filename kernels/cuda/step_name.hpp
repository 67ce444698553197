/// What errors call a step.
#pragma once

#include "kernels/cuda/steps.hpp"

#include <string_view>
#include <variant>

namespace dlrun::kernels::cuda {

/// The name of a struct as the compiler spells it, without namespaces.
template <class Step>
constexpr std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view before = "Step = ";
  text.remove_prefix(text.find(before) + before.size());
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

/// E.g. "softmax_forward".
inline std::string_view step_name(const step& what) {
  return std::visit([]<class Step>(const Step&) { return name_of<Step>(); }, what);
}

} // namespace dlrun::kernels::cuda
