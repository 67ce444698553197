#include "engine/loss.hpp"

#include "engine/layer.hpp"
#include "engine/losses/losses.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// As the graph names it: as written, or by kind and position.
std::string last_layer(const spec::ModelSpec& spec) {
  if (spec.layers().empty()) return "";
  const auto& last = *spec.layers().rbegin();
  return last.name().empty() ? fmt::format("{}{}", kind_of(last), spec.layers_size() - 1) : last.name();
}

} // namespace

result<void> loss::check(const batch& batch) const {
  const auto bad = find_bad(batch);
  if (!bad) return {};
  return fail(error_code::bad_data, fmt::format("record {} of the batch {}", bad->record, bad->what));
}

tl::unexpected<error> loss_error(const char* name, const std::string& what) {
  return fail(error_code::bad_spec, fmt::format("loss {}: {}", name, what));
}

result<std::unique_ptr<const loss>> make_loss(const spec::ModelSpec& spec, const shape& output) {
  const auto layer = last_layer(spec);
  const auto& chosen = spec.loss();
  switch (chosen.kind_case()) {
  case spec::LossSpec::kCrossEntropy: return make_cross_entropy(chosen.cross_entropy(), layer, output);
  case spec::LossSpec::kBceWithLogits: return make_bce_with_logits(chosen.bce_with_logits(), layer, output);
  case spec::LossSpec::kMse: return make_mse(layer, output);
  case spec::LossSpec::kL1: return make_l1(layer, output);
  case spec::LossSpec::kHuber: return make_huber(chosen.huber(), layer, output);
  case spec::LossSpec::KIND_NOT_SET: break;
  }
  return make_cross_entropy({}, layer, output);
}

} // namespace dlrun::engine
