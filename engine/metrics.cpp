#include "engine/metrics.hpp"

#include "engine/metrics/makers.hpp"
#include "engine/parameter_layout.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

metric_result make_metric(const spec::MetricSpec& spec, const measured& on) {
  switch (spec.kind_case()) {
  case spec::MetricSpec::kAccuracy: return make_accuracy(on);
  case spec::MetricSpec::kTopK: return make_top_k(spec.top_k(), on);
  case spec::MetricSpec::kAuc: return make_auc(spec.auc(), on);
  case spec::MetricSpec::kPrecision: return make_precision(spec.precision(), on);
  case spec::MetricSpec::kRecall: return make_recall(spec.recall(), on);
  case spec::MetricSpec::kMae: return make_mae(on);
  case spec::MetricSpec::kCustom: return make_custom(spec.custom(), on);
  case spec::MetricSpec::KIND_NOT_SET: break;
  }
  return fail(error_code::bad_spec, "a metric has no kind; name one, e.g. accuracy");
}

/// Those of the specification, or the one that goes with the loss.
std::vector<spec::MetricSpec> chosen(const spec::ModelSpec& spec, output_kind outputs) {
  if (!spec.metrics().empty()) return {spec.metrics().begin(), spec.metrics().end()};
  spec::MetricSpec one;
  if (outputs == output_kind::values)
    one.mutable_mae();
  else
    one.mutable_accuracy();
  return {one};
}

} // namespace

double not_measured() { return std::numeric_limits<double>::quiet_NaN(); }

tl::unexpected<error> metric_error(const char* name, const std::string& what) {
  return fail(error_code::bad_spec, fmt::format("metric {}: {}", name, what));
}

tl::unexpected<error> unmeasurable(const char* name, const measured& on, const char* instead) {
  return metric_error(name, fmt::format("cannot be measured with the loss {}; {} can", on.loss, instead));
}

metric_set::metric_set(std::vector<std::unique_ptr<const metric>> metrics)
    : metrics_(std::move(metrics)) {
  for (const auto& one : metrics_) floats_ += one->floats();
}

void metric_set::add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const {
  DLRUN_CHECK(sums.size() == floats_, "{} floats for {} sums of metrics", sums.size(), floats_);
  for (const auto& one : metrics_) {
    one->add(outputs, batch, sums.first(one->floats()));
    sums = sums.subspan(one->floats());
  }
}

named_values metric_set::values(std::span<const double> sums) const {
  named_values named;
  const bool measured = sums.size() == floats_;
  for (const auto& one : metrics_) {
    named.emplace_back(one->name(), measured ? one->value(sums.first(one->floats())) : not_measured());
    if (measured) sums = sums.subspan(one->floats());
  }
  return named;
}

std::vector<std::string> metric_set::names() const {
  std::vector<std::string> all;
  for (const auto& one : metrics_) all.push_back(one->name());
  return all;
}

result<metric_set> make_metrics(const spec::ModelSpec& spec, const shape& output, const loss& loss) {
  const measured on{loss.name(), loss.outputs(), *element_count(output)};
  std::vector<std::unique_ptr<const metric>> metrics;
  for (const auto& one : chosen(spec, on.outputs)) {
    auto made = make_metric(one, on);
    if (!made) return tl::unexpected<error>(made.error());
    const auto name = (*made)->name();
    if (std::ranges::any_of(metrics, [&](const auto& other) { return other->name() == name; }))
      return metric_error(name.c_str(), "is written twice; remove one");
    metrics.push_back(std::move(*made));
  }
  metric_set set(std::move(metrics));
  if (set.floats() > parameter_layout::metric_floats_max)
    return fail(
        error_code::bad_spec,
        fmt::format("model.metrics need {} sums, of at most {}: 2 bins for each output of auc, 3 for each "
                    "class of precision and of recall, 2 for each other metric; leave one out or give auc "
                    "fewer bins",
                    set.floats(), parameter_layout::metric_floats_max));
  return set;
}

} // namespace dlrun::engine
