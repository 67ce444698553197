#include "actors/coordinator/job_report.hpp"

#include "actors/common/evaluation_metrics.hpp"
#include "actors/protocol/bit_patterns.hpp"
#include "base/sha256.hpp"
#include "base/shell_word.hpp"

#include <algorithm>
#include <bit>
#include <caf/config.hpp>
#include <cmath>
#include <fmt/format.h>

namespace dlrun::coordinator {
namespace {

dlrun::run_status status_of(protocol::job_outcome outcome) {
  switch (outcome) {
  case protocol::job_outcome::completed: return dlrun::run_status::completed;
  case protocol::job_outcome::interrupted: return dlrun::run_status::interrupted;
  case protocol::job_outcome::failed: break;
  }
  return dlrun::run_status::failed;
}

/// A sample counts when every shard has applied it; it is missing or doubled when any shard says
/// so.
void add_ledgers(dlrun::report& report, const common::job_facts& job,
                 const std::vector<protocol::shard_status>& shards, version_id last) {
  if (shards.size() < job.ps_shards()) return;
  const auto lowest = [&](auto field) { return field(*std::ranges::min_element(shards, {}, field)); };
  const auto highest = [&](auto field) { return field(*std::ranges::max_element(shards, {}, field)); };
  report.steps = lowest([](const auto& s) { return s.applied.value; });
  report.samples_committed = lowest([](const auto& s) { return s.ledger.samples_applied; });
  report.samples_missing = highest([](const auto& s) { return s.ledger.samples_missing; });
  report.samples_duplicated = highest([](const auto& s) { return s.ledger.samples_duplicated; });
  report.steps_redone = highest([](const auto& s) { return s.ledger.steps_redone; });
  report.epochs = report.steps / job.sampler.steps_per_epoch();
  if (report.status == dlrun::run_status::completed) {
    const auto all = job.sampler.records_up_to(last);
    report.samples_missing = std::max(report.samples_missing, all - std::min(all, report.samples_committed));
  }
}

void add_training_metrics(dlrun::report& report, const common::job_facts& job,
                          const std::vector<protocol::shard_status>& shards) {
  report.train_metrics = job.metric_values({}); // their names
  for (const auto& shard : shards) {
    if (!shard.has_metrics || shard.metrics.records == 0) continue;
    const auto records = static_cast<double>(shard.metrics.records);
    report.train_loss = std::bit_cast<double>(shard.metrics.loss_sum_bits) / records;
    report.train_metrics = job.metric_values(protocol::from_bits(shard.metrics.sum_bits));
  }
}

void add_best(dlrun::report& report, const common::job_facts& job, const report_sources& sources) {
  const auto metric = common::best_metric(job);
  if (!metric) return;
  for (const auto& one : sources.evaluations) {
    const auto value = metric->value(one);
    const auto known = report.best ? std::optional(report.best->value) : std::nullopt;
    if (!metric->is_better(value, known)) continue;
    report.best = dlrun::best_evaluation{one.version.value, job.spec.train().keep_best().metric(), value};
  }
}

void add_evaluations(dlrun::report& report, const common::job_facts& job, const report_sources& sources) {
  for (const auto& one : sources.evaluations) {
    const auto values = common::values_of(job, one);
    report.evaluations.push_back(
        {one.version.value, job.epochs_at(one.version), values.loss, {values.metrics}});
    if (one.version == sources.last_version && one.records > 0)
      report.validation = {.loss = values.loss, .metrics = values.metrics, .samples = one.records};
  }
  add_best(report, job, sources);
  report.stopped_early = sources.last_version.value < job.steps();
}

void add_step_times(dlrun::report& report, const std::vector<protocol::shard_status>& shards) {
  const auto slowest =
      std::ranges::max_element(shards, {}, [](const auto& s) { return s.step_times.p99_us; });
  if (slowest == shards.end()) return;
  const auto to_ms = [](std::uint64_t us) { return static_cast<double>(us) / 1000.0; };
  const auto& times = slowest->step_times;
  report.step_ms = {to_ms(times.p50_us), to_ms(times.p99_us), to_ms(times.max_us)};
}

/// A record of a slot that is left out as a whole is none besides.
void add_parked(dlrun::report& report, const common::job_facts& job,
                const protocol::parked_slots_list& parked) {
  const auto skipped = job.skipped();
  for (const auto& one : parked) {
    if (!one.is_whole() && protocol::is_parked(parked, one.step, one.slot)) continue;
    report.parked_shards.push_back(
        {.step = one.step.value,
         .slot = one.slot.value,
         .records = one.is_whole() ? job.sampler.records_in_slot(one.step, one.slot) : 1,
         .reason = std::ranges::binary_search(skipped, one) ? "skipped on request"
                                                            : "its worker died on it again and again",
         .skip = protocol::to_string(one),
         .numbers = numbers_in_files(job, one)});
  }
}

dlrun::store_loss to_report(const store_loss& loss) {
  const auto name = [](const protocol::store_standing& store) {
    return fmt::format("{:016x}", store.identity);
  };
  return {.ps_shard = loss.shard.value,
          .incarnation = loss.start.value,
          .host = loss.now.host,
          .store = name(loss.now),
          .found = loss.found.value,
          .host_before = loss.before.host,
          .store_before = name(loss.before),
          .acknowledged = loss.acknowledged.value,
          .reason = loss.reason};
}

} // namespace

protocol::job_ended judged(const common::job_facts& job, const report_sources& sources) {
  if (sources.ended.outcome != protocol::job_outcome::completed) return sources.ended;
  const auto last =
      std::ranges::find(sources.evaluations, sources.last_version, &protocol::evaluated::version);
  if (last == sources.evaluations.end() || last->records == 0) return sources.ended;
  const auto loss = common::values_of(job, *last).loss;
  if (std::isfinite(loss)) return sources.ended;
  return {
      protocol::job_outcome::failed,
      fmt::format("the training is done, but on the validation data the loss of its last version, step {}, "
                  "is {}: what the model gives for some of the records is beyond a float. 'dlrun export {}' "
                  "writes the model all the same",
                  sources.last_version, loss, base::shell_word(job.root_dir.string()))};
}

std::vector<std::uint64_t> numbers_in_files(const common::job_facts& job, const protocol::parked_slot& what) {
  if (job.data == nullptr) return {};
  const auto data = common::open_dataset(job, data::data_part::training);
  if (!data) return {};
  std::vector<std::uint64_t> numbers;
  job.sampler.records(what.step, what.slot, numbers);
  if (!what.is_whole() && what.record < numbers.size()) numbers = {numbers[what.record]};
  for (auto& number : numbers) number = (*data)->number_in_files(number);
  return numbers;
}

dlrun::report make_report(const common::job_facts& job, const report_sources& sources,
                          protocol::time_point now) {
  dlrun::report report;
  report.job = job.spec.name();
  report.status = status_of(sources.ended.outcome);
  report.reason = sources.ended.reason;
  report.error = protocol::code_of(sources.ended);
  add_ledgers(report, job, sources.shards, sources.last_version);
  add_training_metrics(report, job, sources.shards);
  add_step_times(report, sources.shards);
  if (!sources.digests.empty()) report.parameters_sha256 = base::sha256_hex(sources.digests);
  add_evaluations(report, job, sources);
  report.wall_seconds = sources.tallies.earlier().wall_seconds + protocol::to_seconds(now - job.started);
  report.rewinds = sources.tallies.rewinds();
  std::uint64_t redone = 0;
  for (const auto& one : report.rewinds) redone += one.steps_redone;
  report.steps_redone = std::max(report.steps_redone, redone); // the shards that lived on count them too
  add_parked(report, job, sources.parked);
  for (const auto& loss : sources.store_losses) report.store_losses.push_back(to_report(loss));
  report.journal_losses = sources.tallies.journal_losses();
  report.samples_per_second = static_cast<double>(report.samples_committed) / report.wall_seconds;
  const auto slots_needed = report.steps * job.microbatches_per_step();
  const auto totals = sources.tallies.totals();
  if (totals.slots_computed > 0)
    report.goodput =
        std::min(1.0, static_cast<double>(slots_needed) / static_cast<double>(totals.slots_computed));
  report.recoveries = sources.tallies.earlier().recoveries;
  for (const auto& record : sources.recoveries) {
    report.recoveries.push_back(to_recovery(record, job.started));
    report.recoveries.back().at_seconds += sources.tallies.earlier().wall_seconds;
  }
  std::ranges::stable_sort(report.recoveries, {}, &dlrun::recovery::at_seconds);
  report.deterministic = !job::is_relaxed(job.spec);
  report.durability = {job.spec.durability().log(), job.spec.durability().sync(), 1 + job.copies(),
                       static_cast<double>(totals.copy_waited_us) / 1e6};
  report.bytes_logged = totals.bytes_logged;
  report.bytes_snapshotted = totals.bytes_snapshotted;
  report.bytes_copied = totals.bytes_copied;
  const auto threads = static_cast<std::uint32_t>(job.spec.cluster().threads_per_worker());
  report.versions = {job.build.dlrun,
                     fmt::format("{}.{}.{}", CAF_VERSION / 10000, CAF_VERSION / 100 % 100, CAF_VERSION % 100),
                     job.build.onednn, job.build.compiler, 1};
  report.host = {job.build.cpu_model, job.build.instruction_set, threads,
                 sources.device.empty() ? job.spec.cluster().device() : sources.device};
  return report;
}

} // namespace dlrun::coordinator
