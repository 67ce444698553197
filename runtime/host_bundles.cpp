#include "runtime/host_bundles.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/common/clock.hpp"
#include "runtime/host_bundle.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

records::RunHost remembered(const std::string& name, const std::string& address, const std::string& folder) {
  records::RunHost one;
  one.set_name(name);
  one.set_address(address);
  one.set_folder(folder);
  return one;
}

} // namespace

host_bundles::host_bundles(parts from, records::RunRecord record)
    : from_{std::move(from)}
    , hosts_before_{tell_hosts(record)} {
  const auto& job = *from_.job;
  common_.set_root(from_.plan.own().name());
  common_.set_agent_address(from_.agent_address);
  common_.set_agent_process(job.process);
  common_.set_run_token(job.run_token.to_bytes());
  common_.set_data_at(from_.data_at);
  common_.set_hosts(static_cast<std::uint32_t>(from_.plan.hosts.hosts_size()));
  common_.set_no_coordinator(!coordinator_moves(from_.plan, job.spec));
  common_.set_root_dir(job.run_dir.string());
  *common_.mutable_spec() = job.spec;
  *common_.mutable_record() = std::move(record);
  for (const auto& revision : job.revisions) *common_.add_revisions() = revision;
}

result<std::shared_ptr<host_bundles>> host_bundles::make(parts from) {
  const auto run_dir = from.job->run_dir;
  auto record = read_record(run_dir);
  if (!record) return tl::unexpected(record.error());
  if (!*record)
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' has no run.record, which other hosts compare their data with",
                            run_dir.string()));
  std::shared_ptr<host_bundles> made{new host_bundles(std::move(from), std::move(**record))};
  std::vector<records::RunHost> listed;
  for (const auto& host : made->from_.plan.hosts.hosts())
    if (host.name() != made->from_.plan.own().name())
      listed.push_back(
          remembered(host.name(), host.address(), made->folder_of(host, made->common_.record())));
  if (auto known = made->remember(std::move(listed)); !known) return tl::unexpected(known.error());
  for (const auto& one : made->from_.secrets->enrolled())
    for (const auto& known : made->common_.record().hosts())
      if (known.name() == one.name()) made->folders_.try_emplace(known.name(), known.folder());
  return made;
}

/// Where a host keeps what is of this run: as it says, else as it was the last time, under this
/// name or at this address.
std::string host_bundles::folder_of(const spec::HostSpec& host, const records::RunRecord& record) const {
  const auto& before = record.hosts();
  auto found = std::ranges::find(before, host.name(), &records::RunHost::name);
  if (found == before.end()) found = std::ranges::find(before, host.address(), &records::RunHost::address);
  if (!host.has_folder() && found != before.end()) return found->folder();
  return folder_for_new_run(host, from_.job->run_dir);
}

/// Each of these hosts, in place of the one that had its name or folder before.
result<void> host_bundles::remember(std::vector<records::RunHost> now) {
  {
    const std::scoped_lock lock{mutex_};
    for (const auto& one : now) folders_[one.name()] = one.folder();
  }
  return change_record([&](auto& record) {
    for (const auto& before : record.hosts())
      if (std::ranges::none_of(now, [&](const auto& one) {
            return one.name() == before.name() ||
                   (one.address() == before.address() && one.folder() == before.folder());
          }))
        now.push_back(before);
    record.mutable_hosts()->Assign(now.begin(), now.end());
  });
}

result<void> host_bundles::change_record(const std::function<void(records::RunRecord&)>& change) {
  const std::scoped_lock lock{mutex_};
  return change_locked(change);
}

result<void> host_bundles::change_job(const std::function<void(records::RunRecord&)>& change) {
  const std::scoped_lock lock{mutex_};
  return from_.secrets->change_job(from_.job->process, [&] { return change_locked(change); });
}

/// With the lock held.
result<void> host_bundles::change_locked(const std::function<void(records::RunRecord&)>& change) {
  auto record = common_.record();
  change(record);
  if (auto written = write_record(from_.job->run_dir, record); !written) return written;
  if (const auto& home = from_.secrets->home())
    if (auto kept = home->keep_record(record); !kept) return kept;
  *common_.mutable_record() = std::move(record);
  return {};
}

std::map<std::string, agent::drain_stage> host_bundles::drains() const {
  const std::scoped_lock lock{mutex_};
  std::map<std::string, agent::drain_stage> all;
  for (const auto& one : common_.record().drains())
    if (one.host() != from_.plan.own().name()) // nothing can be moved off the root's
      all[one.host()] = one.is_over() ? agent::drain_stage::drained : agent::drain_stage::draining;
  return all;
}

result<void> host_bundles::keep_drains(const std::map<std::string, agent::drain_stage>& all) {
  return change_record([&](auto& record) {
    record.clear_drains();
    for (const auto& [host, stage] : all) {
      auto& one = *record.add_drains();
      one.set_host(host);
      one.set_is_over(stage == agent::drain_stage::drained);
    }
  });
}

std::string host_bundles::folder_on(const std::string& host) const {
  const std::scoped_lock lock{mutex_};
  const auto found = folders_.find(host);
  return found == folders_.end() ? std::string{} : found->second;
}

bootstrap::HostBundle host_bundles::begin(const std::string& host) const {
  const std::scoped_lock lock{mutex_};
  auto bundle = common_;
  bundle.mutable_record()->clear_revisions(); // it has the specification beside it
  bundle.mutable_record()->clear_asked();
  bundle.set_host(host);
  return bundle;
}

result<std::string> host_bundles::finish(bootstrap::HostBundle bundle, std::uint32_t index) const {
  const auto credentials = from_.identity->issue({protocol::role_kind::host_agent, index}, bundle.host());
  if (!credentials) return tl::unexpected(credentials.error());
  bundle.set_index(index);
  bundle.set_running_us(common::to_us(common::now()) - common::to_us(from_.job->started));
  tell_of_beats(from_.beats, bundle);
  *bundle.mutable_credentials() = agent::to_message(*credentials);
  return written_bundle(bundle);
}

result<std::string> host_bundles::for_listed(const spec::HostSpec& host) const {
  const auto& hosts = from_.plan.hosts.hosts();
  const auto place =
      static_cast<int>(std::ranges::find(hosts, host.name(), &spec::HostSpec::name) - hosts.begin());
  auto bundle = begin(host.name());
  bundle.set_address(from_.plan.number_of(place));
  bundle.set_folder(folder_of(host, bundle.record()));
  bundle.set_cpus(static_cast<std::uint32_t>(host.cpus()));
  bundle.set_preemptible(host.preemptible());
  bundle.set_takes(host.takes());
  bundle.set_machine(host.machine());
  return finish(std::move(bundle), static_cast<std::uint32_t>(place));
}

/// A root that comes back knows it again.
result<void> host_bundles::keep_enrolled(const bootstrap::JoinRequest& who, const agent::admission& as) {
  records::EnrolledHost one;
  one.set_name(as.host);
  one.set_address(who.address());
  one.set_index(as.index);
  one.set_cpus(who.cpus());
  const std::scoped_lock lock{mutex_};
  return from_.secrets->keep(one);
}

/// A host that is for any job has a folder of this run in its own.
result<std::string> host_bundles::for_enrolled(const bootstrap::JoinRequest& who,
                                               const agent::admission& as) {
  auto bundle = begin(as.host);
  spec::HostSpec host;
  host.set_name(as.host);
  host.set_address(who.address());
  if (!who.folder().empty())
    host.set_folder(
        (std::filesystem::path{who.folder()} / fmt::format("run-{:016x}", bundle.record().run())).string());
  bundle.set_address(who.address());
  bundle.set_folder(folder_of(host, bundle.record()));
  bundle.set_cpus(who.cpus());
  bundle.set_preemptible(who.preemptible());
  bundle.set_takes(who.takes());
  bundle.set_machine(who.machine());
  if (auto known = remember({remembered(as.host, who.address(), bundle.folder())}); !known)
    return tl::unexpected(known.error());
  if (auto kept = keep_enrolled(who, as); !kept) return tl::unexpected(kept.error());
  return finish(std::move(bundle), as.index);
}

} // namespace dlrun::runtime
