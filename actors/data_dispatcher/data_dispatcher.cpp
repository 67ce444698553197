#include "actors/data_dispatcher/data_dispatcher.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/evaluation_metrics.hpp"
#include "actors/data_dispatcher/course_journal.hpp"
#include "job/choices.hpp"
#include "job/quantity.hpp"

#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(50);

/// What the specification evaluates before the last version, and what it goes by.
evaluation_rules rules_of(const common::job_context& job) {
  evaluation_rules rules{.versions = job.evaluations(), .best = common::best_metric(job)};
  if (!job.spec.train().has_early_stopping()) return rules;
  const auto& wanted = job.spec.train().early_stopping();
  auto metric = common::watched_metric_from(job.metric_names, wanted.metric(), job::mode_of(wanted),
                                            "train.early_stopping.metric");
  DLRUN_CHECK(metric.has_value(), "the specification was checked");
  rules.stopping =
      stopping_rule{std::move(*metric), static_cast<std::uint64_t>(wanted.patience()), wanted.min_delta()};
  return rules;
}

slot_sizes sizes_of(const common::job_context& job) {
  return {[order = job.sampler](step_id step) { return order.slots(step); },
          [order = job.sampler](step_id step, slot_id slot) { return order.records_in_slot(step, slot); },
          static_cast<std::uint64_t>(job.model->min_batch())};
}

/// What `dlrun resume` was asked to change is a revision of the specification.
std::optional<wanted_change> change_of(const common::job_context& job) {
  if (job.revision() == 0) return std::nullopt;
  return wanted_change{job.goes_on_from(), job.revision(), job.skipped()};
}

data_dispatcher_core_config core_config(const common::role_context& context, journaled_course course) {
  const auto& job = *context.job;
  const auto max_recovery = job::parse_duration(job.spec.durability().max_recovery()).value_or(0);
  return {.self = context.self.incarnation,
          .workers = job.workers(),
          .ps_shards = job.ps_shards(),
          .steps = job.steps(),
          .microbatches_per_step = job.microbatches_per_step(),
          .evaluates = job.spec.data().has_validation(),
          .metrics = job.model->metrics().names().size(),
          .durability = job.durability(),
          .sizes = sizes_of(job),
          .couples = job.couples(),
          .evaluations = rules_of(job),
          .max_recovery =
              std::chrono::duration_cast<protocol::duration>(std::chrono::duration<double>(max_recovery)),
          .course = std::move(course)};
}

} // namespace

data_dispatcher_state::behavior data_dispatcher_state::start(pointer self, common::role_context context,
                                                             arguments with) {
  auto course = with.journal ? read_course(with.journal->entries()) : journaled_course{};
  const auto unreadable = course ? std::string{} : course.error().message;
  self->state.role.reset(new data_dispatcher_state(self, std::move(context), std::move(with),
                                                   std::move(course).value_or(journaled_course{})));
  auto& role = *self->state.role;
  if (!unreadable.empty()) role.quit(unreadable);
  if (const auto change = change_of(*role.context_.job))
    role.carry_out(role.core_.on_wanted_change(*change, role.with_.now()));
  // It serves one coordinator and ends with it.
  self->monitor(role.with_.coordinator);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
  self->send(self, protocol::tick{});
  return role.make_behavior();
}

data_dispatcher_state::data_dispatcher_state(pointer self, common::role_context context, arguments with,
                                             journaled_course course)
    : self_{self}
    , context_{std::move(context)}
    , with_{std::move(with)}
    , writer_{with_.journal ? course_writer{with_.journal->entries()} : course_writer{}}
    , core_{core_config(context_, std::move(course))} {}

void data_dispatcher_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

data_dispatcher_state::behavior data_dispatcher_state::make_behavior() {
  return {
      [this](const protocol::worker_status& status) {
        carry_out(core_.on_worker_status(status, with_.now()));
      },
      [this](const protocol::shard_status& status) { carry_out(core_.on_shard_status(status, with_.now())); },
      [this](const protocol::evaluated& result) { carry_out(core_.on_evaluated(result, with_.now())); },
      [this](const protocol::kept& answer) { carry_out(core_.on_kept(answer, with_.now())); },
      [this](const protocol::divergence& what) { carry_out(core_.on_divergence(what)); },
      [this](const protocol::tick&) { on_tick(); },
      [this](const protocol::worker_available& who, const protocol::worker_actor& handle) {
        on_worker_available(who, handle);
      },
      [this](const protocol::worker_gone& who) {
        carry_out(core_.on_worker_lost(who.worker, who.incarnation, with_.now()));
      },
      [this](const protocol::ps_shard_available& who, const protocol::ps_shard_actor& handle) {
        on_ps_shard_available(who, handle);
      },
      [this](const protocol::ps_shard_gone& who) { core_.on_shard_lost(who.shard, who.incarnation); },
      [this](const protocol::poisoned_slot& slot) {
        carry_out(core_.on_poisoned_slot(slot.what, with_.now()));
      },
      [this](const protocol::workers_wanted& word) { core_.on_workers_wanted(word.workers); },
      [this](const protocol::close_training& wanted) { carry_out(core_.on_close(wanted.timeline)); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

void data_dispatcher_state::on_worker_available(const protocol::worker_available& who,
                                                const protocol::worker_actor& handle) {
  workers_[who.worker] = handle;
  carry_out(core_.on_worker_joined(who.worker, who.incarnation, with_.now()));
}

void data_dispatcher_state::on_ps_shard_available(const protocol::ps_shard_available& who,
                                                  const protocol::ps_shard_actor& handle) {
  ps_shards_[who.shard] = handle;
  core_.on_shard_started(who.shard, who.incarnation);
}

void data_dispatcher_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_.on_tick(with_.now()));
  self_->send(with_.coordinator, core_.progress());
}

// ---- what the core decided

void data_dispatcher_state::carry_out(const data_dispatcher_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

void data_dispatcher_state::carry_out(const to_worker& action) {
  if (const auto found = workers_.find(action.to); found != workers_.end())
    std::visit([&](const auto& message) { self_->send(found->second, message); }, action.message);
}

void data_dispatcher_state::carry_out(const to_ps_shard& action) {
  if (const auto found = ps_shards_.find(action.to); found != ps_shards_.end())
    std::visit([&](const auto& message) { self_->send(found->second, message); }, action.message);
}

void data_dispatcher_state::carry_out(const to_coordinator& action) {
  std::visit([this](const auto& message) { self_->send(with_.coordinator, message); }, action);
}

void data_dispatcher_state::carry_out(const journal_course& action) {
  const auto post = common::poster<protocol::local_data_dispatcher_actor>{self_};
  with_.journal->write(writer_.to_writes(action.course),
                       [this, post, id = action.id](const result<void>& written) {
                         post([this, id, written] {
                           if (!written) return quit(written.error().message);
                           carry_out(core_.on_journaled(id, with_.now()));
                         });
                       });
}

void data_dispatcher_state::carry_out(const decision_made& action) {
  context_.log->log(action.is_warning ? spdlog::level::warn : spdlog::level::info, "{}: {}", action.event,
                    action.reason);
}

} // namespace dlrun::data_dispatcher
