#include "observability/run_metrics.hpp"

#include "actors/common/fingerprint.hpp"
#include "observability/told_evaluation.hpp"

#include <algorithm>

namespace dlrun::observability {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using protocol::role_kind;

using labels = std::vector<ClientMetric::Label>;

constexpr double microseconds_a_second = 1e6;
constexpr double permille = 1e3;
constexpr std::array restartable{role_kind::coordinator, role_kind::ps_shard, role_kind::worker,
                                 role_kind::keeper};

ClientMetric gauge(double value, labels of = {}) {
  ClientMetric metric;
  metric.label = std::move(of);
  metric.gauge.value = value;
  return metric;
}

ClientMetric counter(std::uint64_t value, labels of = {}) {
  ClientMetric metric;
  metric.label = std::move(of);
  metric.counter.value = static_cast<double>(value);
  return metric;
}

MetricFamily family(const char* name, const char* help, MetricType type, std::vector<ClientMetric> metrics) {
  return {name, help, type, std::move(metrics)};
}

MetricFamily gauge_family(const char* name, const char* help, double value) {
  return family(name, help, MetricType::Gauge, {gauge(value)});
}

/// One gauge a metric of the model.
MetricFamily metrics_family(const char* name, const char* help, const named_values& values) {
  std::vector<ClientMetric> metrics;
  for (const auto& [metric, value] : values) metrics.push_back(gauge(value, {{"metric", metric}}));
  return family(name, help, MetricType::Gauge, std::move(metrics));
}

labels labels_of(const protocol::role_name& role) {
  return {{"role", std::string{protocol::to_string(role.kind)}}, {"index", std::to_string(role.index)}};
}

labels labels_of(role_kind kind) { return {{"role", std::string{protocol::to_string(kind)}}}; }

bool is_up(const agent::role_view& role) {
  constexpr std::array<std::string_view, 5> not_up{"pending", "starting", "down", "failed to start",
                                                   "stopped"};
  return role.pid != 0 && std::ranges::find(not_up, role.state) == not_up.end();
}

} // namespace

void run_metrics::durations::add(double one) {
  ++count;
  seconds += one;
  for (std::size_t i = 0; i < bucket_seconds.size(); ++i)
    if (one <= bucket_seconds[i]) ++up_to[i];
}

run_metrics::run_metrics(run_facts facts)
    : facts_{std::move(facts)}
    , rate_{facts_.sampler.records_in_step({0})} {
  for (const auto kind : restartable) losses_[kind]; // 0 before the first
}

// ---- what is heard

void run_metrics::update(const agent::run_snapshot& now, protocol::time_point at) {
  const std::scoped_lock lock{mutex_};
  now_ = now;
  samples_per_second_ = rate_.at_step(now.step, at);
  samples_ = std::max(samples_, facts_.sampler.records_up_to({now.step}));
  for (const auto& role : now.roles)
    if (std::ranges::find(restartable, role.role.kind) != restartable.end()) restarts_[role.role];
  look_for_coordinator(now.roles, at);
}

/// Nobody tells that it works again.
void run_metrics::look_for_coordinator(const std::vector<agent::role_view>& roles, protocol::time_point at) {
  if (!coordinator_lost_) return;
  for (const auto& role : roles) {
    if (role.role.kind != role_kind::coordinator || role.incarnation <= coordinator_lost_->incarnation ||
        !is_up(role))
      continue;
    const auto lost = protocol::time_point{protocol::duration{coordinator_lost_->at_us}};
    add_resumed(role.role, role.incarnation, protocol::to_seconds(at - lost));
    return coordinator_lost_.reset();
  }
}

void run_metrics::add_resumed(const protocol::role_name& role, dlrun::incarnation incarnation,
                              double seconds) {
  if (resumed_.emplace(role, incarnation).second) losses_[role.kind].resumed.add(std::max(seconds, 0.0));
}

void run_metrics::event(const protocol::job_event& event) {
  const std::scoped_lock lock{mutex_};
  ++events_[event.event];
  const auto after = static_cast<double>(event.numbers.after_us) / microseconds_a_second;
  if (event.event == "role-restarted") {
    ++restarts_[event.role];
  } else if (event.event == "role-exited") {
    losses_[event.role.kind].detected.add(after);
    if (event.role.kind == role_kind::coordinator && !coordinator_lost_) coordinator_lost_ = event;
  } else if (event.event == "worker-resumed" || event.event == "ps-shard-resumed") {
    add_resumed(event.role, event.incarnation, after);
  } else if (auto evaluation = told_evaluation(event)) {
    validation_ = std::move(evaluation);
  }
}

void run_metrics::finish(const dlrun::report& report) {
  const std::scoped_lock lock{mutex_};
  if (!report.evaluations.empty()) validation_ = report.evaluations.back();
}

// ---- what is shown

std::vector<MetricFamily> run_metrics::collect() const {
  const std::scoped_lock lock{mutex_};
  families all;
  all.push_back(family("dlrun_info", "The run: 1, with its job and dlrun's version as labels.",
                       MetricType::Gauge,
                       {gauge(1, {{"job", facts_.job}, {"version", common::dlrun_version()}})}));
  collect_progress(all);
  collect_training(all);
  collect_validation(all);
  collect_roles(all);
  collect_speeds(all);
  collect_copies(all);
  collect_stall(all);
  collect_losses(all);
  return all;
}

void run_metrics::collect_progress(families& all) const {
  all.push_back(
      gauge_family("dlrun_step", "Steps that every PS shard has applied.", static_cast<double>(now_.step)));
  all.push_back(gauge_family("dlrun_steps_target", "Steps of the whole job.",
                             static_cast<double>(facts_.sampler.total_steps())));
  all.push_back(gauge_family("dlrun_durable_step",
                             "Newest version that every PS shard has on disk; 0 where nothing is kept.",
                             static_cast<double>(now_.durable_step)));
  if (now_.archive && now_.archive->made_at_us != 0) {
    all.push_back(gauge_family("dlrun_archive_step", "Version of the newest archive.",
                               static_cast<double>(now_.archive->step)));
    all.push_back(gauge_family("dlrun_archive_age_seconds", "Since the newest archive was made.",
                               agent::age_s(*now_.archive)));
  }
  all.push_back(
      family("dlrun_samples_total",
             "Records of the steps applied so far over the whole run; what is done again counts once.",
             MetricType::Counter, {counter(samples_)}));
  all.push_back(gauge_family("dlrun_samples_per_second", "Records of the steps applied in the last second.",
                             samples_per_second_));
}

void run_metrics::collect_training(families& all) const {
  if (!now_.train || now_.train->step == 0) return;
  const auto& train = *now_.train;
  all.push_back(
      gauge_family("dlrun_epoch", "Epoch of the newest step, from 0.", static_cast<double>(train.epoch)));
  all.push_back(
      gauge_family("dlrun_train_loss", "Mean loss of the records of the newest step.", train.step_loss));
  all.push_back(
      gauge_family("dlrun_train_epoch_loss", "Mean loss of the records of the epoch so far.", train.loss));
  all.push_back(metrics_family("dlrun_train_metric",
                               "Metrics of the model, of the records of the epoch so far.", train.metrics));
  all.push_back(gauge_family("dlrun_learning_rate", "Learning rate of the newest step.",
                             facts_.learning_rate({train.step})));
}

void run_metrics::collect_validation(families& all) const {
  if (!validation_) return;
  all.push_back(gauge_family("dlrun_validation_step", "Version that was evaluated last.",
                             static_cast<double>(validation_->step)));
  all.push_back(gauge_family("dlrun_validation_loss", "Mean loss of the validation records at that version.",
                             validation_->loss));
  all.push_back(metrics_family("dlrun_validation_metric",
                               "Metrics of the model, of the validation records at that version.",
                               validation_->metrics.all));
}

void run_metrics::collect_roles(families& all) const {
  std::vector<ClientMetric> up;
  for (const auto& role : now_.roles) up.push_back(gauge(is_up(role) ? 1 : 0, labels_of(role.role)));
  all.push_back(
      family("dlrun_role_up", "1 while a role runs and is heard of.", MetricType::Gauge, std::move(up)));
  all.push_back(gauge_family("dlrun_workers_wanted",
                             "Workers that there should be; 'dlrun scale' changes it.", now_.workers.wanted));
  all.push_back(
      gauge_family("dlrun_workers_present", "Workers that have joined, and stay.", now_.workers.present));
  std::vector<ClientMetric> restarts;
  for (const auto& [role, count] : restarts_) restarts.push_back(counter(count, labels_of(role)));
  all.push_back(family("dlrun_role_restarts_total", "Starts of a role that followed its end.",
                       MetricType::Counter, std::move(restarts)));
  std::vector<ClientMetric> events;
  for (const auto& [name, count] : events_) events.push_back(counter(count, {{"event", name}}));
  all.push_back(family("dlrun_events_total", "Events of events.jsonl, since this start of the run.",
                       MetricType::Counter, std::move(events)));
}

void run_metrics::collect_speeds(families& all) const {
  std::vector<ClientMetric> shares, speeds;
  for (const auto& role : now_.roles) {
    if (role.role.kind != role_kind::worker || !is_up(role)) continue;
    const labels worker{{"index", std::to_string(role.role.index)}};
    shares.push_back(gauge(role.slots, worker));
    speeds.push_back(gauge(role.slots_per_second, worker));
  }
  all.push_back(family("dlrun_worker_slots", "Slots of each step that a worker is to compute.",
                       MetricType::Gauge, std::move(shares)));
  all.push_back(family("dlrun_worker_slots_per_second",
                       "Slots that a worker computes in a second of computing.", MetricType::Gauge,
                       std::move(speeds)));
}

/// Of a job of several hosts.
void run_metrics::collect_copies(families& all) const {
  std::vector<ClientMetric> whole, behind, rate, busy, waited, safe, used, limit;
  for (const auto& role : now_.roles) {
    if (role.role.kind != role_kind::keeper) continue;
    labels shard{{"index", std::to_string(protocol::shard_of(role.role).value)}};
    if (const auto copy = protocol::copy_of(role.role); copy > 0)
      shard.push_back({"copy", std::to_string(copy + 1)});
    whole.push_back(gauge(role.state == "whole" ? 1 : 0, shard));
    if (!role.copy) continue;
    behind.push_back(gauge(static_cast<double>(role.copy->behind), shard));
    const auto& cost = role.copy->cost;
    if (cost.steps == 0) continue;
    rate.push_back(gauge(static_cast<double>(cost.bytes_per_second), shard));
    busy.push_back(gauge(cost.busy_permille / permille, shard));
    waited.push_back(gauge(cost.waited_permille / permille, shard));
  }
  for (const auto& host : now_.hosts) {
    if (host.state == "there") safe.push_back(gauge(host.loses.empty() ? 1 : 0, {{"host", host.name}}));
    if (host.memory.limit == 0) continue;
    used.push_back(gauge(static_cast<double>(host.memory.used), {{"host", host.name}}));
    limit.push_back(gauge(static_cast<double>(host.memory.limit), {{"host", host.name}}));
  }
  const auto add = [&](const char* name, const char* help, std::vector<ClientMetric> metrics) {
    if (!metrics.empty()) all.push_back(family(name, help, MetricType::Gauge, std::move(metrics)));
  };
  add("dlrun_copy_whole", "1 while the copy of a PS shard holds all that was committed.", std::move(whole));
  add("dlrun_copy_behind_steps", "Versions that the PS shard has made and its copy lacks.",
      std::move(behind));
  add("dlrun_copy_bytes_per_second", "At which the copy was sent, while it was.", std::move(rate));
  add("dlrun_copy_busy_ratio", "Part of the time in which the copy was being sent.", std::move(busy));
  add("dlrun_copy_waited_ratio", "Part of the time in which the next version waited for the copy alone.",
      std::move(waited));
  add("dlrun_host_may_be_lost", "1 while nothing committed would be lost with that host and its disk.",
      std::move(safe));
  add("dlrun_host_memory_bytes", "Memory that counts against the limit of that host.", std::move(used));
  add("dlrun_host_memory_limit_bytes", "What that host, or its container, may use.", std::move(limit));
}

ClientMetric run_metrics::metric_of(const durations& times, role_kind kind) {
  ClientMetric metric;
  metric.label = labels_of(kind);
  metric.histogram.sample_count = times.count;
  metric.histogram.sample_sum = times.seconds;
  for (std::size_t i = 0; i < bucket_seconds.size(); ++i)
    metric.histogram.bucket.push_back({times.up_to[i], bucket_seconds[i]});
  return metric;
}

/// Nothing while steps are made: a series for each who was ever waited for would stay.
void run_metrics::collect_stall(families& all) const {
  if (!now_.stall) return;
  auto of = labels_of(now_.stall->what.role);
  of.push_back({"host", now_.stall->host});
  of.push_back({"phase", std::string{to_string(now_.stall->what.phase)}});
  all.push_back(family("dlrun_stall_seconds", "How long no step was made; the labels name whom it waits for.",
                       MetricType::Gauge, {gauge(protocol::to_seconds(now_.stall->lasts), std::move(of))}));
}

void run_metrics::collect_losses(families& all) const {
  std::vector<ClientMetric> recoveries, detected, resumed;
  for (const auto& [kind, losses] : losses_) {
    recoveries.push_back(counter(losses.resumed.count, labels_of(kind)));
    detected.push_back(metric_of(losses.detected, kind));
    resumed.push_back(metric_of(losses.resumed, kind));
  }
  all.push_back(family("dlrun_recoveries_total", "Losses of a role whose replacement works.",
                       MetricType::Counter, std::move(recoveries)));
  all.push_back(family("dlrun_loss_detected_seconds",
                       "From the last sign of life of a role to the notice of its end.",
                       MetricType::Histogram, std::move(detected)));
  all.push_back(family("dlrun_recovery_seconds",
                       "From the notice of a role's end until its replacement works.", MetricType::Histogram,
                       std::move(resumed)));
}

} // namespace dlrun::observability
