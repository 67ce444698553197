#include "runtime/new_run.hpp"

#include "runtime/journal_choice.hpp"
#include "runtime/run_record.hpp"

namespace dlrun::runtime {

result<new_run> begin_run(prepared_job& job, const std::string& wanted_folder, torn_beginning torn,
                          const std::optional<hosts_plan>& hosts) {
  if (auto opened = open_metrics_port(job); !opened) return tl::unexpected(opened.error());
  if (auto settled = settle_journal(job.spec); !settled) return tl::unexpected(settled.error());
  auto device = settle_device(job);
  if (!device) return tl::unexpected(device.error());
  auto folder = run_folder::create(wanted_folder, job.spec, torn);
  if (!folder) return tl::unexpected(folder.error());
  auto durability = settle_durability(job, *folder);
  if (!durability) return tl::unexpected(durability.error());
  auto record = make_record(job);
  const auto replicas = choose_replicas(job, hosts_at_least(hosts));
  record.set_replicas(replicas.replicas);
  if (auto written = write_record(folder->path(), record); !written) return tl::unexpected(written.error());
  if (auto begun = begin_journal(job.spec, record.run()); !begun) return tl::unexpected(begun.error());
  set_replicas(replicas, job);
  return new_run{std::move(*folder), std::move(*device), std::move(*durability),
                 hosts ? std::optional{replicas} : std::nullopt};
}

} // namespace dlrun::runtime
