#include "runtime/new_run.hpp"

#include "runtime/journal_choice.hpp"
#include "runtime/run_record.hpp"

namespace dlrun::runtime {

namespace {

/// What goes into the folder before anything is started.
result<void> fill(new_run& run, prepared_job& job, const std::optional<hosts_plan>& hosts) {
  auto durability = settle_durability(job, run.folder);
  if (!durability) return tl::unexpected(durability.error());
  run.durability = std::move(*durability);
  auto record = make_record(job);
  const auto replicas = choose_replicas(job, hosts_at_least(hosts));
  record.set_replicas(replicas.replicas);
  if (auto written = write_record(run.folder.path(), record); !written) return written;
  if (auto begun = begin_journal(job.spec, record.run()); !begun) return begun;
  set_replicas(replicas, job);
  if (hosts) run.replicas = replicas;
  return {};
}

} // namespace

result<new_run> begin_run(prepared_job& job, const std::string& wanted_folder, torn_beginning torn,
                          const std::optional<hosts_plan>& hosts) {
  if (auto opened = open_metrics_port(job); !opened) return tl::unexpected(opened.error());
  if (auto settled = settle_journal(job.spec); !settled) return tl::unexpected(settled.error());
  auto device = settle_device(job);
  if (!device) return tl::unexpected(device.error());
  auto folder = run_folder::create(wanted_folder, job.spec, torn);
  if (!folder) return tl::unexpected(folder.error());
  new_run made{std::move(*folder), std::move(*device), {}, {}};
  if (auto filled = fill(made, job, hosts); !filled) {
    made.folder.abandon();
    return tl::unexpected(filled.error());
  }
  return made;
}

} // namespace dlrun::runtime
