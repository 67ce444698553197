#include "engine/metrics/makers.hpp"

#include <dlrun/detail/named_factories.hpp>

namespace dlrun {
namespace {

detail::named_factories<metric_factory>& metrics() {
  static detail::named_factories<metric_factory> all{"metric"};
  return all;
}

} // namespace

result<void> register_metric(const std::string& type, metric_factory factory) {
  return metrics().add(type, std::move(factory));
}

engine::metric_result engine::make_custom(const spec::Custom& spec, const measured& on) {
  const auto factory = metrics().find(spec.type());
  if (!factory)
    return metric_error(
        "custom",
        fmt::format("no metric '{}' is registered in this program, but: {}; run the one that brings it",
                    spec.type(), metrics().names()));
  const metric_request request{on.loss, on.outputs, on.width, {spec.options().begin(), spec.options().end()}};
  auto made =
      detail::call_factory(fmt::format("metric '{}'", spec.type()), [&] { return (*factory)(request); });
  if (!made) return tl::unexpected(made.error());
  if ((*made)->floats() < 1) return metric_error(spec.type().c_str(), "keeps no sums: floats() is 0");
  if (!detail::is_registrable((*made)->name()))
    return metric_error(
        spec.type().c_str(),
        fmt::format("its name() '{}' must be of letters, digits, '.', '_', '-'", (*made)->name()));
  return made;
}

} // namespace dlrun
