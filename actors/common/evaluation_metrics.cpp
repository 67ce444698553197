#include "actors/common/evaluation_metrics.hpp"

#include <algorithm>
#include <bit>
#include <fmt/ranges.h>
#include <limits>

namespace dlrun::common {
namespace {

constexpr auto loss_name = "loss";

double mean_loss(const protocol::evaluated& result) {
  if (result.records == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(result.loss_sum_bits) / static_cast<double>(result.records);
}

double metric_at(const protocol::evaluated& result, std::size_t place) {
  return place < result.metric_bits.size() ? std::bit_cast<double>(result.metric_bits[place])
                                           : std::numeric_limits<double>::quiet_NaN();
}

bool larger_is_better(const std::string& name, job::metric_mode mode) {
  if (mode == job::metric_mode::automatic) return name != loss_name && name != "mae";
  return mode == job::metric_mode::max;
}

} // namespace

evaluation_values values_of(const job_facts& job, const protocol::evaluated& result) {
  evaluation_values values{mean_loss(result), {}};
  for (const auto& name : job.metric_names)
    values.metrics.emplace_back(name, metric_at(result, values.metrics.size()));
  return values;
}

result<protocol::watched_metric> watched_metric_from(const std::vector<std::string>& metrics,
                                                     const std::string& name, job::metric_mode mode,
                                                     const std::string& key) {
  const bool larger = larger_is_better(name, mode);
  if (name == loss_name) return protocol::watched_metric{mean_loss, larger};
  auto names = metrics;
  const auto found = std::ranges::find(names, name);
  const auto place = static_cast<std::size_t>(found - names.begin());
  if (found != names.end())
    return protocol::watched_metric{
        [place](const protocol::evaluated& result) { return metric_at(result, place); }, larger};
  names.insert(names.begin(), loss_name);
  return fail(error_code::bad_spec,
              fmt::format("{}: nothing that is evaluated is called \"{}\"; there is {}, and what you add to "
                          "model.metrics",
                          key, name, fmt::join(names, ", ")));
}

std::optional<protocol::watched_metric> best_metric(const job_facts& job) {
  const auto& train = job.spec.train();
  if (!train.has_keep_best()) return std::nullopt;
  const auto& wanted = train.keep_best();
  auto made =
      watched_metric_from(job.metric_names, wanted.metric(), job::mode_of(wanted), "train.keep_best.metric");
  return made ? std::optional(*made) : std::nullopt;
}

result<void> check_watched_metrics(const std::vector<std::string>& metrics, const spec::TrainSpec& train) {
  const auto check = [&](const auto& wanted, const std::string& key) -> result<void> {
    const auto made = watched_metric_from(metrics, wanted.metric(), job::mode_of(wanted), key);
    if (!made) return tl::unexpected(made.error());
    return {};
  };
  if (train.has_keep_best())
    if (auto known = check(train.keep_best(), "train.keep_best.metric"); !known) return known;
  return train.has_early_stopping() ? check(train.early_stopping(), "train.early_stopping.metric")
                                    : result<void>{};
}

} // namespace dlrun::common
