#include "tests/simulation/checks.hpp"

#include "tests/simulation/ps_shard_process.hpp"

#include <algorithm>

namespace dlrun::simulation {
namespace {

using protocol::durability;

std::string digest_of(value content) {
  std::string digest;
  for (int i = 0; i < 32; ++i) digest += static_cast<char>((content >> (8 * (i % 8))) & 0xff);
  return digest;
}

/// Where the evaluations in the journal, each of which is checked elsewhere, say that training
/// ends.
version_id last_version(world& where) {
  double lowest = 0;
  std::uint64_t in_vain = 0;
  bool first = true;
  for (const auto& one : where.journal().course.evaluations) {
    if (where.plan().patience == 0) break;
    const bool better = first || loss_of(one) < lowest;
    if (better) lowest = loss_of(one);
    first = false;
    in_vain = better ? 0 : in_vain + 1;
    if (in_vain == where.plan().patience) return one.version;
  }
  return {where.job().steps};
}

/// I1, from what the shards say of themselves.
void check_ledger(world& where, const course& trained, const ps_shard_process& shard) {
  const auto last = last_version(where);
  if (where.happened().disk_lost && shard.core().state().applied != last)
    return; // between its last report and the end
  const auto totals = shard.core().status().ledger;
  auto records = where.truth().records(trained, last);
  if (totals.samples_applied != records || totals.samples_missing != 0 || totals.samples_duplicated != 0)
    broken("I1", "{} counts {} of {} samples, {} missing, {} twice", shard.name(), totals.samples_applied,
           records, totals.samples_missing, totals.samples_duplicated);
  // A coordinator may die before it tells of a rewind that is journaled.
  if (totals.steps_redone != 0 && where.journal().course.history.size() == 1)
    broken("waste", "{} has redone {} steps", shard.name(), totals.steps_redone);
  if (shard.values_held() != 0 && !where.plan().is_durable())
    broken("values", "{} still holds {} gradients", shard.name(), shard.values_held());
}

/// I6: nothing is over before it is on every disk.
void check_disk(world& where, const course& trained, ps_shard_id shard) {
  const auto last = last_version(where);
  const auto& disk = where.disk_of(shard);
  const auto* image = disk.snapshot(last);
  const bool is_there = image != nullptr && newest_timeline(disk.history()) == where.journal().timeline();
  if (!is_there) {
    if (where.happened().disk_lost) return; // between its last report and the end
    if (where.happened().damaged_after_end.contains(shard)) return;
    if (where.plan().damage > 0 && contains(disk.restorable(), last)) return; // the log makes it again
    broken("I6", "the job is over, but ps_shard {} has no durable version {}", shard, last);
  }
  if (image->content != where.truth().parameters(trained, last, shard))
    broken("I2", "ps_shard {} has wrong parameters on disk", shard);
}

void check_evaluations(world& where, const course& trained) {
  for (const auto version : where.plan().evaluations) {
    if (version > last_version(where)) continue;
    const auto& done = where.journal().course.evaluations;
    const auto at =
        std::find_if(done.begin(), done.end(), [&](const auto& one) { return one.version == version; });
    if (at == done.end()) {
      if (where.happened().journal_lost || where.happened().disk_lost || where.plan().damage > 0) continue;
      broken("R17", "version {} was not evaluated", version);
    }
    if (at->loss_sum_bits != where.truth().whole_parameters(trained, version))
      broken("I2", "the evaluation of version {} is of other parameters", version);
  }
}

/// The version with the lowest loss, the first of equal ones, can be read from every disk.
void check_best(world& where, const course& trained) {
  const auto& happened = where.happened();
  if (!where.plan().keeps_best || happened.disk_lost || where.plan().damage > 0) return;
  const protocol::evaluated* best = nullptr;
  for (const auto& one : where.journal().course.evaluations)
    if (best == nullptr || loss_of(one) < loss_of(*best)) best = &one;
  if (best == nullptr) return;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard) {
    const auto* image = where.disk_of({shard}).snapshot(best->version);
    if (image == nullptr)
      broken("R13", "ps_shard {} has no snapshot of the best version {}", shard, best->version);
    if (image->content != where.truth().parameters(trained, best->version, {shard}))
      broken("I2", "the best version of ps_shard {} has other parameters", shard);
  }
}

/// Training goes back only when something is lost, or when somebody wants it.
void check_waste(world& where) {
  const auto& happened = where.happened();
  const auto& plan = where.plan();
  const bool planned =
      happened.went_back_on_purpose || !plan.poison.empty() || happened.disk_lost || happened.journal_lost;
  if (!planned && !happened.ps_shard_lost && happened.rewinds > 0)
    broken("waste", "training went back although no PS shard was lost");
  const bool has_memory = plan.durability == durability::snapshots && !plan.hosts.are_several() &&
                          !happened.memory_lost && !happened.memory_left;
  const bool excused = happened.worker_lost || (plan.durability == durability::snapshots && !has_memory) ||
                       happened.lossy_power_cut || happened.disk_lost || plan.loss > 0 || plan.damage > 0 ||
                       !plan.poison.empty();
  if (!excused && happened.rewinds_for_lost_gradients > 0)
    broken("waste", "training went back although no worker was lost");
}

/// R18: what kills, and no more of it than it takes.
void check_left_out(world& where, const course& trained) {
  const auto& poison = where.plan().poison;
  for (const auto& what : trained.parked) {
    const auto at = [&](const auto& one) { return one.step == what.step && one.slot == what.slot; };
    const auto of_slot = std::count_if(poison.begin(), poison.end(), at);
    const auto records = parked_records(trained.parked, what.step, what.slot).size();
    const bool is_guilty = std::any_of(poison.begin(), poison.end(), [&](const auto& one) {
      return at(one) && (what.is_whole() || one.records.contains(what.record));
    });
    if (!is_guilty) broken("R18", "{} is left out, and it is good", describe(what));
    if (std::cmp_greater(records, of_slot))
      broken("R18", "{} records of slot {} of step {} are left out for {}", records, what.slot, what.step,
             of_slot);
    const auto left = where.job().records_of(what.step, what.slot) - records;
    if (what.is_whole() && left >= where.plan().records_min)
      broken("R18", "{} is left out, of which {} records are good", describe(what), left);
  }
}

} // namespace

void check_failed_as_promised(world& where) {
  const auto& ended = *where.end().ended;
  if (ended.outcome != protocol::job_outcome::failed || ended.reason.find("ps_shard") == std::string::npos)
    broken("I6", "a PS shard without a disk was lost, and the job ended with: {}", ended.reason);
}

void check_completed(world& where) {
  const auto& ended = *where.end().ended;
  const auto last = last_version(where);
  if (ended.outcome != protocol::job_outcome::completed || !where.end().report)
    broken("I6", "the job ended with: {}", ended.reason);
  const auto trained = course_of(where.journal().course.history, where.job().steps);
  check_left_out(where, trained);
  std::string digests;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard) {
    digests += digest_of(where.truth().parameters(trained, last, {shard}));
    if (where.plan().is_durable()) check_disk(where, trained, {shard});
    if (const auto* running = where.newest(protocol::ps_shard_role({shard})))
      check_ledger(where, trained, *static_cast<const ps_shard_process*>(running));
  }
  if (where.end().report->digests != digests)
    broken("I2", "the digests are not those of the undisturbed run");
  check_waste(where);
  check_evaluations(where, trained);
  check_best(where, trained);
  if (last.value != where.job().steps) where.say(nullptr, "was stopped early at version {}", last);
  if (!where.plan().evaluates && last.value == where.job().steps) return;
  const auto& evaluation = where.end().report->evaluation;
  if (!evaluation || evaluation->loss_sum_bits != where.truth().whole_parameters(trained, last))
    broken("I2", "the evaluation is missing or of other parameters");
}

} // namespace dlrun::simulation
