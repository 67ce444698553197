/// What the coordinator tells of evaluations.
#include "actors/common/clock.hpp"
#include "actors/common/evaluation_metrics.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/coordinator/coordinator_journal.hpp"

#include <bit>

namespace dlrun::coordinator {
namespace {

constexpr protocol::role_name dispatcher_name{protocol::role_kind::data_dispatcher, 0};

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

} // namespace

/// The one at the end is in the summary, so that alone it is told only there.
void coordinator_state::on_evaluated(const protocol::evaluated& result) {
  if (context_.job->spec.train().evaluate_every() != "off") tell_evaluated(result);
  carry_out(core_->ending().on_evaluated(result));
}

void coordinator_state::tell_evaluated(const protocol::evaluated& result) {
  const auto& job = *context_.job;
  const auto values = common::values_of(*job.model, result);
  auto text = fmt::format("step {} (epoch {:.4g}): val_loss {:.4f}", result.version,
                          job.epochs_at(result.version), values.loss);
  protocol::event_numbers numbers{
      .has_step = true, .step = result.version.value, .values = {{"loss", bits_of(values.loss)}}};
  for (const auto& [name, value] : values.metrics) {
    text += fmt::format("  val_{} {:.4f}", name, value);
    numbers.values.push_back({name, bits_of(value)});
  }
  tell_user("evaluated", dispatcher_name, core_->dispatcher_incarnation(), std::move(text),
            std::move(numbers));
}

void coordinator_state::on_training_finished(const protocol::training_finished& what) {
  const auto& job = *context_.job;
  if (what.version.value < job.steps()) {
    const auto& rule = job.spec.train().early_stopping();
    tell_user("stopped-early", dispatcher_name, core_->dispatcher_incarnation(),
              fmt::format("training ends at step {} of {}: {} evaluations have brought no better {}",
                          what.version, job.steps(), rule.patience(), rule.metric()),
              {.has_step = true, .step = what.version.value});
  }
  carry_out(core_->ending().on_training_finished(what.timeline, what.version));
}

/// For the report: those that count. Without a journal nobody goes back, so it is all that were
/// heard.
std::vector<protocol::evaluated> coordinator_state::evaluations() const {
  if (journal_) return read_evaluations(journal_->entries());
  std::vector<protocol::evaluated> all;
  for (const auto& [version, result] : core_->ending().evaluations()) all.push_back(result);
  return all;
}

} // namespace dlrun::coordinator
