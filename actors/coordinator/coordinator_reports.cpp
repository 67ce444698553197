#include "actors/coordinator/coordinator_reports.hpp"

#include "actors/common/evaluation_metrics.hpp"
#include "actors/coordinator/job_report.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <utility>

namespace dlrun::coordinator {
namespace {

constexpr protocol::role_name dispatcher_role{protocol::role_kind::data_dispatcher, 0};

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

/// What a loss that was noticed so long ago has come to.
protocol::event_numbers after_loss(protocol::duration time) {
  return {.after_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()))};
}

} // namespace

// ---- losses

void coordinator_reports::tell(const protocol::slots_redispatched& what) {
  tell("slots-redispatched", protocol::worker_role(what.lost), what.incarnation,
       fmt::format("slots of worker {} are with others after {:.1f} ms", what.lost,
                   static_cast<double>(what.after_us) / 1000.0),
       {.after_us = what.after_us});
}

void coordinator_reports::tell(const protocol::worker_contributed& what,
                               const std::vector<recovery_record>& made_good) {
  const auto& first = what.what;
  for (const auto& one : made_good)
    tell("worker-resumed", one.role, first.incarnation,
         fmt::format("worker {} contributes again from step {}, {:.0f} ms after the loss", first.worker,
                     first.step, 1000 * protocol::to_seconds(*one.resumed)),
         after_loss(*one.resumed));
}

void coordinator_reports::tell(const protocol::ps_shard_resumed& what,
                               const std::vector<recovery_record>& made_good) {
  for (const auto& one : made_good)
    tell("ps-shard-resumed", one.role, what.incarnation,
         fmt::format("ps_shard {} has made version {}, {:.0f} ms after the loss", what.shard, what.version,
                     1000 * protocol::to_seconds(*one.resumed)),
         after_loss(*one.resumed));
}

void coordinator_reports::tell(const protocol::timeline_started& what) {
  tell_of_dispatcher(
      "rewind",
      fmt::format("everybody goes back to version {} on timeline {}, {} steps are done again: {}",
                  what.branch, what.timeline, what.steps_redone, what.reason),
      {.has_step = true, .step = what.branch.value});
}

void coordinator_reports::tell(const store_loss& what) {
  tell("store-short", protocol::ps_shard_role(what.shard), what.start, describe(what),
       {.values = {protocol::named_number("acknowledged", static_cast<double>(what.acknowledged.value)),
                   protocol::named_number("found", static_cast<double>(what.found.value))}},
       {what.now.host, what.reason});
}

void coordinator_reports::tell(const journal_is_older& what) {
  tell("journal-older", what.role, what.start,
       fmt::format("the journal is older than the training: {} incarnation {} exists, and the journal, which "
                   "has issued up to {}, does not know it. Older data was put in its place; fences and "
                   "timelines begin anew, beyond all that were",
                   protocol::to_string(what.role), what.start, what.known),
       {.values = {protocol::named_number("known", static_cast<double>(what.known.value))}});
}

// ---- evaluations

/// The one at the end is in the summary, so that alone it is told only there.
void coordinator_reports::tell(const protocol::evaluated& result) {
  const auto& job = *context_.job;
  if (!job::parse_interval(job.spec.train().evaluate_every())) return; // off
  const auto values = common::values_of(job, result);
  auto text = fmt::format("step {} (epoch {:.4g}): val_loss {:.4f}", result.version,
                          job.epochs_at(result.version), values.loss);
  protocol::event_numbers numbers{
      .has_step = true, .step = result.version.value, .values = {{"loss", bits_of(values.loss)}}};
  for (const auto& [name, value] : values.metrics) {
    text += fmt::format("  val_{} {:.4f}", name, value);
    numbers.values.push_back({name, bits_of(value)});
  }
  tell_of_dispatcher("evaluated", std::move(text), std::move(numbers));
}

void coordinator_reports::tell(const protocol::training_finished& what) {
  const auto& job = *context_.job;
  if (what.version.value >= job.steps()) return;
  const auto& rule = job.spec.train().early_stopping();
  tell_of_dispatcher("stopped-early",
                     fmt::format("training ends at step {} of {}: {} evaluations have brought no better {}",
                                 what.version, job.steps(), rule.patience(), rule.metric()),
                     {.has_step = true, .step = what.version.value});
}

// ---- slots that end their workers

void coordinator_reports::tell(const slot_suspected& what) {
  const auto& [step, slot, together] = what.what;
  tell_own("slot-suspected",
           together ? fmt::format("workers die in slot {} of step {}, and of none of its records alone: ever "
                                  "more of them are tried together",
                                  slot, step)
                    : fmt::format("workers die in slot {} of step {}: its records are tried one by one", slot,
                                  step),
           {.has_step = true, .step = step.value});
}

void coordinator_reports::tell(const protocol::poisoned_slot& what) {
  if (!poison_told_.insert(what.what).second) return;
  const auto numbers = numbers_in_files(*context_.job, what.what);
  tell_own("record-parked",
           fmt::format("{}{} ends its workers and is left out of the training", protocol::describe(what.what),
                       numbers.empty() ? "" : fmt::format(" (number {} in its files)", numbers.front())),
           {.has_step = true, .step = what.what.step.value});
}

std::string describe(const protocol::divergence& what, const common::job_facts& job,
                     const std::optional<protocol::version_set>& kept) {
  const auto where = what.has_slot ? fmt::format("step {}, slot {}", what.step, what.slot)
                                   : fmt::format("step {}", what.step);
  const auto resume = job.resume_command();
  const auto without =
      what.has_slot ? fmt::format(", or without the records, '{} --skip {}:{}'", resume, what.step, what.slot)
                    : std::string{};
  const auto way_out =
      kept ? fmt::format("kept are at least the versions {}: go on from before it went wrong, '{} "
                         "--from STEP --set train.optimizer...'{}",
                         protocol::to_string(*kept), resume, without)
           : std::string{"nothing was kept, since durability.log is off"};
  return fmt::format("the training diverged at {}: {}; {}", where, what.text, way_out);
}

// ---- itself

/// Training goes on as far as nothing new has to be decided.
void coordinator_reports::tell_stalled(const std::optional<error>& why) {
  const auto before = std::exchange(stall_, why ? std::optional(why->code) : std::nullopt);
  if (before == stall_) return;
  const bool is_away = stall_.value_or(before.value_or(error_code::disk_full)) == error_code::timed_out;
  if (why)
    tell_own(is_away ? "journal-away" : "disk-full", "the coordinator waits: " + why->message);
  else if (is_away)
    tell_own("journal-back", "the coordinator goes on: it has its journal");
  else
    tell_own("disk-ok", "the coordinator goes on: the disk takes its journal again");
}

void coordinator_reports::tell(const announce_end& end) {
  if (!std::exchange(ended_, true))
    context_.log->info("job-ended: {}", end.ended.reason.empty() ? "all data trained" : end.ended.reason);
  auto word = end.ended;
  word.coordinator = context_.self.incarnation;
  self_->send(context_.agent, std::move(word));
}

void coordinator_reports::report_alive(const std::function<void()>& join_again) {
  const auto incarnation = dispatcher_();
  if (!incarnation && !stall_) return;
  const auto* const state = ended_                            ? "done"
                            : stall_ == error_code::timed_out ? "no-journal" // the agent knows this word
                            : stall_                          ? "disk-full"
                                                              : "coordinating";
  const protocol::heartbeat beat{.role = context_.role, .self = context_.self, .state = state};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, beat, [this, join_again](const protocol::coordinator_location& known) {
        if (known.incarnation != context_.self.incarnation) join_again();
      });
  if (!incarnation) return;
  const protocol::heartbeat dispatcher{
      .role = dispatcher_role, .self = {*incarnation, 0}, .state = ended_ ? "done" : "dispatching"};
  dispatcher_heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, dispatcher, [](const auto&) {});
}

void coordinator_reports::tell_of_dispatcher(std::string event, std::string text,
                                             protocol::event_numbers numbers) {
  tell(std::move(event), dispatcher_role, dispatcher_().value_or(dlrun::incarnation{}), std::move(text),
       std::move(numbers));
}

void coordinator_reports::tell_own(std::string event, std::string text, protocol::event_numbers numbers) {
  tell(std::move(event), context_.role, context_.self.incarnation, std::move(text), std::move(numbers));
}

void coordinator_reports::tell(std::string event, const protocol::role_name& role,
                               dlrun::incarnation incarnation, std::string text,
                               protocol::event_numbers numbers, protocol::event_place place) {
  context_.log->info("{}: {}", event, text);
  self_->send(context_.agent, protocol::job_event{std::move(event), role, incarnation, std::move(text),
                                                  std::move(numbers), std::move(place)});
}

} // namespace dlrun::coordinator
