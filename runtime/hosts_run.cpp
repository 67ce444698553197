#include "runtime/hosts_run.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "job/choices.hpp"
#include "runtime/data_giver.hpp"
#include "runtime/held_stores.hpp"
#include "runtime/host_bundle.hpp"
#include "runtime/root_beats.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// A host decodes and compares all of the data before it is there,
constexpr auto decode_patience = std::chrono::minutes(5);
/// and may have to be given it, over a line that carries at least so much, for all such hosts.
constexpr std::uint64_t given_bytes_per_s = 4'000'000;
constexpr auto hosts_look_period = std::chrono::milliseconds(100);
constexpr auto gone_patience = std::chrono::seconds(5);
/// The agents that an earlier root left dial ten times a second.
constexpr auto reattach_patience = std::chrono::seconds(2);

std::chrono::seconds there_patience_of(const common::job_context& job) {
  std::uint64_t bytes = 0;
  if (job::data_share_of(job.spec.data()) == job::data_share::automatic)
    for (const auto& memory : data::memory_of(*job.data)) bytes += memory->bytes().size();
  return decode_patience + std::chrono::seconds{bytes / given_bytes_per_s};
}

/// Gives the data to hosts that have not got it; null where data.share is off.
result<std::shared_ptr<data_giver>> start_giver(const hosts_plan& plan, const common::job_context& job,
                                                const std::shared_ptr<security::tls_context>& own) {
  if (job::data_share_of(job.spec.data()) == job::data_share::off) return nullptr;
  auto giver = data_giver::start({.token = job.run_token, .listen = plan.own_number(), .tls = own}, job.data);
  if (!giver) return tl::unexpected(giver.error());
  (*giver)->others_are({});
  return std::shared_ptr{std::move(*giver)};
}

/// What all agents of hosts are told alike.
bootstrap::HostBundle common_bundle(const hosts_plan& plan, const common::job_context& job,
                                    records::RunRecord record, const std::string& agent_address) {
  bootstrap::HostBundle bundle;
  bundle.set_root(plan.own().name());
  bundle.set_agent_address(agent_address);
  bundle.set_agent_process(job.process);
  bundle.set_run_token(job.run_token.bytes.data(), job.run_token.bytes.size());
  *bundle.mutable_spec() = job.spec;
  record.clear_revisions();
  *bundle.mutable_record() = std::move(record);
  for (const auto& revision : job.revisions) *bundle.add_revisions() = revision;
  return bundle;
}

/// Where a host keeps what is of this run: as the list says, else as it was the last time, under
/// this name or at this address.
std::string folder_of(const spec::HostSpec& host, const common::job_context& job,
                      const records::RunRecord& record) {
  const auto& before = record.hosts();
  auto found = std::ranges::find(before, host.name(), &records::RunHost::name);
  if (found == before.end()) found = std::ranges::find(before, host.address(), &records::RunHost::address);
  if (!host.has_folder() && found != before.end()) return found->folder();
  return folder_for_new_run(host, job.run_dir);
}

/// Each other host of the list, in place of the one that had its name or folder before.
result<void> remember_hosts(const hosts_plan& plan, const common::job_context& job,
                            records::RunRecord& record) {
  std::vector<records::RunHost> all;
  for (const auto& host : plan.hosts.hosts()) {
    if (host.name() == plan.own().name()) continue;
    records::RunHost one;
    one.set_name(host.name());
    one.set_address(host.address());
    one.set_folder(folder_of(host, job, record));
    all.push_back(std::move(one));
  }
  for (const auto& before : record.hosts())
    if (std::ranges::none_of(all, [&](const auto& now) {
          return now.name() == before.name() ||
                 (now.address() == before.address() && now.folder() == before.folder());
        }))
      all.push_back(before);
  record.mutable_hosts()->Assign(all.begin(), all.end());
  return write_record(job.run_dir, record);
}

int place_of(const hosts_plan& plan, const std::string& name) {
  int place = 0;
  while (plan.hosts.hosts(place).name() != name) ++place;
  return place;
}

result<std::string> bundle_for(const spec::HostSpec& host, bootstrap::HostBundle bundle,
                               const hosts_plan& plan, const common::job_context& job,
                               const job_identity& identity, const root_beats& beats) {
  const auto place = place_of(plan, host.name());
  const auto index = static_cast<std::uint32_t>(place);
  const auto credentials = identity.issue({protocol::role_kind::host_agent, index}, host.name());
  if (!credentials) return tl::unexpected(credentials.error());
  bundle.set_host(host.name());
  bundle.set_index(index);
  bundle.set_address(plan.number_of(place));
  bundle.set_folder(folder_of(host, job, bundle.record()));
  bundle.set_running_us(common::to_us(common::now()) - common::to_us(job.started));
  bundle.set_cpus(static_cast<std::uint32_t>(host.cpus()));
  tell_of_beats(beats, bundle);
  *bundle.mutable_credentials() = agent::to_message(*credentials);
  return written_bundle(bundle);
}

agent::hosted_roles_config config_of(const hosts_plan& plan, const common::job_context& job,
                                     const root_beats& beats, std::string hosts_before, bool takes_over) {
  agent::hosted_roles_config config;
  config.root_process = job.process;
  config.takes_over = takes_over;
  if (takes_over) config.rules.reattach_patience = reattach_patience;
  config.root_beats_at = beats.exchange->address();
  config.root = plan.own().name();
  config.root_cpus = plan.own().has_cpus() ? static_cast<std::uint32_t>(plan.own().cpus()) : usable_cpus();
  config.threads_per_worker = static_cast<std::uint32_t>(job.spec.cluster().threads_per_worker());
  config.coordinator_moves = job.spec.cluster().journal().has_etcd();
  config.root_stores = held_stores(job.run_dir, job.ps_shards());
  config.hosts_before = std::move(hosts_before);
  config.rules.start_patience = there_patience_of(job);
  for (const auto& host : plan.hosts.hosts())
    if (host.name() != config.root) config.hosts[host.name()] = static_cast<std::uint32_t>(host.cpus());
  return config;
}

/// On the other hosts of the list.
std::map<std::string, std::string> folders_of(const hosts_plan& plan, const records::RunRecord& record) {
  std::map<std::string, std::string> folders;
  for (const auto& host : plan.hosts.hosts())
    for (const auto& known : record.hosts())
      if (known.name() == host.name() && host.name() != plan.own().name())
        folders[host.name()] = known.folder();
  return folders;
}

/// Renews the certificate of the root's own agent after half of its lifetime.
std::function<void(protocol::time_point)> own_renewal(const std::shared_ptr<const job_identity>& identity,
                                                      const std::shared_ptr<security::tls_context>& own,
                                                      const hosts_plan& plan) {
  const auto half = std::chrono::seconds{plan.hosts.certificate_lifetime_s()} / 2.0;
  const auto period = std::chrono::duration_cast<protocol::duration>(half);
  return [identity, own, host = plan.own().name(), period,
          due = common::now() + period](protocol::time_point now) mutable {
    if (now < due) return;
    due = now + period;
    const auto made = identity->issue({protocol::role_kind::agent, 0}, host);
    if (made) static_cast<void>(own->renew(to_credentials(*made)));
  };
}

} // namespace

result<void> check_for_hosts(const prepared_job& job) {
  if (job::placement_of(job.spec) == job::placement::processes) return {};
  return fail(
      error_code::bad_spec,
      "cluster.placement: with \"threads\" all roles are in one process, and so on one host: leave --hosts "
      "out, or let it be \"processes\"");
}

result<link::remote_access> open_to_hosts(const hosts_plan& plan, identities& who) {
  auto identity = who.secrets->identity(std::chrono::seconds{plan.hosts.certificate_lifetime_s()});
  if (!identity) return tl::unexpected(identity.error());
  who.job = std::move(*identity);
  const auto own = who.job->issue({protocol::role_kind::agent, 0}, plan.own().name());
  if (!own) return tl::unexpected(own.error());
  auto access = make_remote_access(*own, plan.own_number());
  if (!access) return access;
  who.own = access->identity;
  access->port = who.secrets->control_port();
  return access;
}

result<std::unique_ptr<hosts_run>> hosts_run::create(const hosts_plan& plan,
                                                     const std::shared_ptr<const common::job_context>& job,
                                                     std::shared_ptr<agent::role_launcher> here,
                                                     const std::string& agent_address,
                                                     const identities& who) {
  const auto& identity = who.job;
  auto record = read_record(job->run_dir);
  if (!record) return tl::unexpected(record.error());
  if (!*record)
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' has no run.record, which other hosts compare their data with",
                            job->run_dir.string()));
  auto hosts_before = tell_hosts(**record);
  const std::string lost = hosts_before.empty() ? "" : ", and what its stores have is lost";
  if (auto known = remember_hosts(plan, *job, **record); !known) return tl::unexpected(known.error());
  const auto beats = who.secrets->start_beats(plan.own_number());
  if (!beats) return tl::unexpected(beats.error());
  if (auto kept = who.secrets->keep(agent_address, *beats); !kept) return tl::unexpected(kept.error());
  auto folders = folders_of(plan, **record);
  auto giver = start_giver(plan, *job, who.own);
  if (!giver) return tl::unexpected(giver.error());
  auto shared = common_bundle(plan, *job, std::move(**record), agent_address);
  if (*giver) shared.set_data_at((*giver)->address());
  auto commands = host_commands::create(plan, job->run_dir,
                                        [shared, plan, job, identity, beats = *beats](const auto& host) {
                                          return bundle_for(host, shared, plan, *job, *identity, beats);
                                        });
  if (!commands) return tl::unexpected(commands.error());
  auto launcher = std::make_shared<agent::routed_launcher>(agent::routed_launcher_options{
      .hosts = config_of(plan, *job, *beats, std::move(hosts_before), who.takes_over),
      .here = std::move(here),
      .starter = *commands,
      .issue = [identity](const auto& role, const auto& host) { return identity->issue(role, host); },
      .beats = beats->exchange,
      .beat_key = beats->key,
      .keep_own_fresh = own_renewal(identity, who.own, plan),
      .data_givers_are =
          [giver = *giver](const auto& givers) {
            if (giver) giver->others_are(givers);
          },
      .run_dir = job->run_dir,
      .folders = std::move(folders)});
  return std::unique_ptr<hosts_run>{
      new hosts_run(std::move(*commands), std::move(launcher), there_patience_of(*job),
                    fmt::format("; without that host: take it out of the list of hosts{}", lost))};
}

result<void> hosts_run::wait_until_there(const protocol::agent_actor& agent, run_observer& observer) {
  const auto due = std::chrono::steady_clock::now() + there_patience_;
  for (;;) {
    common::post(agent, [launcher = launcher_] { launcher->tick(); }); // its own ticks have not begun
    auto there = launcher_->wait_for_hosts(hosts_look_period);
    if (there) return there;
    const bool is_over = std::chrono::steady_clock::now() >= due;
    if (is_over || there.error().code != error_code::timed_out)
      return fail(there.error().code, there.error().message + way_out_);
    if (const auto reason = observer.asked_to_stop()) return fail(error_code::interrupted, *reason);
  }
}

void hosts_run::wait_until_gone() { commands_->wait_for_end(gone_patience); }

} // namespace dlrun::runtime
