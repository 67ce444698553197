#include "runtime/replicas_choice.hpp"

#include "job/choices.hpp"
#include "runtime/durability_choice.hpp"

#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// Of `auto`: why there is no second store; "" where there is one.
std::string why_one(const spec::JobSpec& spec, std::size_t hosts) {
  if (hosts < 2)
    return "the job begins with one host; a second one, in a list of hosts or by join.hosts_min, would have "
           "copies";
  if (job::durability_log_of(spec) == job::durability_log::off)
    return "with durability.log: off nothing is kept that there could be a copy of";
  if (job::is_relaxed(spec))
    return "a copy is the same to the bit only where each step is, and cluster.determinism is relaxed";
  return "";
}

std::string why_two(const spec::JobSpec& spec, std::size_t hosts, std::uint64_t bytes_per_step) {
  const bool logs_steps = job::durability_log_of(spec) == job::durability_log::every_step;
  const auto sent = logs_steps ? fmt::format("{:.2f} MB a step", static_cast<double>(bytes_per_step) / 1e6)
                               : std::string{"each snapshot"};
  return fmt::format(
      "the job begins with {} hosts, so each PS shard's store has a copy on another one, which "
      "is sent {} (what its link makes of that is measured while it trains); a host that is lost with its "
      "disk costs {}",
      hosts, sent, cost_with_copies(spec.durability().log()));
}

} // namespace

std::uint32_t replicas_on(const spec::JobSpec& spec, std::size_t hosts) {
  if (const auto asked = job::replicas_of(spec)) return *asked;
  return why_one(spec, hosts).empty() ? 2 : 1;
}

replicas_choice choose_replicas(const spec::JobSpec& spec, std::size_t hosts, std::uint64_t bytes_per_step) {
  replicas_choice choice{
      .replicas = replicas_on(spec, hosts), .is_auto = !job::replicas_of(spec), .reason = {}, .degraded = {}};
  const auto without = why_one(spec, hosts);
  if (choice.is_auto)
    choice.reason = without.empty() ? why_two(spec, hosts, bytes_per_step) : without;
  else if (choice.replicas == 1 && without.empty())
    choice.degraded = fmt::format(
        "degraded: with durability.replicas: 1 a host that is lost with its disk takes the only store of its "
        "PS shards along, and all steps are computed again; let it be auto, and in a job of {} hosts that "
        "costs {}",
        hosts, cost_with_copies(spec.durability().log()));
  return choice;
}

replicas_choice choose_replicas(const prepared_job& job, std::size_t hosts) {
  return choose_replicas(job.spec, hosts, job.parameter_count * sizeof(float));
}

std::string tell_copy_cost(const dlrun::report& so_far) {
  if (so_far.durability.replicas < 2 || so_far.wall_seconds <= 0) return "";
  return fmt::format("; so far steps have waited for copies {:.0f} % of the time",
                     100 * so_far.durability.copies_waited_seconds / so_far.wall_seconds);
}

void set_replicas(const replicas_choice& choice, prepared_job& job) {
  job.spec.mutable_durability()->set_replicas(std::to_string(choice.replicas));
}

} // namespace dlrun::runtime
