#include "runtime/hosts_run.hpp"

#include "actors/common/clock.hpp"
#include "actors/protocol/host_takes.hpp"
#include "base/shell_word.hpp"
#include "job/choices.hpp"
#include "runtime/data_giver.hpp"
#include "runtime/held_stores.hpp"
#include "runtime/loopback_check.hpp"
#include "runtime/process_limit.hpp"
#include "runtime/replicas_choice.hpp"
#include "runtime/root_beats.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// A host decodes and compares all of the data before it is there,
constexpr auto decode_patience = std::chrono::minutes(5);
/// and may have to be given it, over a line that carries at least so much, for all such hosts.
constexpr std::uint64_t given_bytes_per_s = 4'000'000;
constexpr auto hosts_look_period = std::chrono::milliseconds(100);
/// From then on it is said who is waited for: most agents are there within a second.
constexpr auto tell_after = std::chrono::seconds(2);
/// The agents that an earlier root left dial ten times a second.
constexpr auto reattach_patience = std::chrono::seconds(2);

std::chrono::seconds there_patience_of(const common::job_context& job) {
  std::uint64_t bytes = 0;
  if (job::data_share_of(job.spec.data()) == job::data_share::automatic)
    for (const auto& memory : data::memory_of(*job.data)) bytes += memory->bytes().size();
  return decode_patience + std::chrono::seconds{bytes / given_bytes_per_s};
}

/// A name that stands for a loopback address here, as of /etc/hosts, is no way for others. A list
/// of nothing else is of one machine.
result<void> check_reachable(const hosts_plan& plan) {
  const auto found = std::ranges::find_if(plan.numbers, is_loopback);
  if (found == plan.numbers.end() || std::ranges::all_of(plan.numbers, is_loopback)) return {};
  const auto& host = plan.hosts.hosts(static_cast<int>(found - plan.numbers.begin()));
  return fail(error_code::bad_usage,
              fmt::format("{}: host {}: '{}' is {} here, which no other host reaches: correct /etc/hosts, or "
                          "write the number of its interface",
                          plan.file, host.name(), host.address(), *found));
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

/// Null where no host may join.
result<std::shared_ptr<enrolment_desk>> open_desk(const hosts_plan& plan,
                                                  const std::shared_ptr<const job_identity>& identity,
                                                  const std::shared_ptr<host_bundles>& bundles) {
  if (!plan.hosts.has_join()) return nullptr;
  return enrolment_desk::create(plan.hosts.join(), identity, plan.own().name(), bundles);
}

/// "" where none may.
std::string way_to_join(const hosts_plan& plan, const enrolment_desk* desk, const common::job_context& job) {
  if (desk == nullptr) return "";
  if (plan.hosts.join().has_key_file())
    return fmt::format(
        "hosts join at {0}: 'dlrun agent --join {0} --key-file FILE' there, with the key of {1}",
        desk->address(), plan.hosts.join().key_file());
  return fmt::format("hosts join at {0}: 'dlrun token {1}' here prints a token, 'dlrun agent --join {0} "
                     "--token-file FILE' there uses it",
                     desk->address(), base::shell_word(job.run_dir.string()));
}

/// Those that had joined an earlier root.
std::vector<agent::returning_host> returning(const root_secrets& secrets) {
  std::vector<agent::returning_host> all;
  for (const auto& one : secrets.enrolled())
    all.push_back({{one.name(), one.address(), one.cpus()}, one.index()});
  return all;
}

/// They may look for the root where it was (R39). One that cannot be called dials there, and joins
/// anew when its time is over.
void call_hosts(const root_secrets& secrets, const root_beats& beats, std::uint16_t port,
                const common::job_context& job) {
  if (port == 0) return;
  const auto time = protocol::from_seconds<std::chrono::milliseconds>(job.spec.cluster().orphan_grace_s());
  for (const auto& one : secrets.enrolled())
    static_cast<void>(call_host(beats, one.name(), one.address(), port, time));
}

/// What of it is the run's, and not the list's.
agent::hosted_roles_config config_of_run(const common::job_context& job, const host_bundles& bundles,
                                         const identities& who) {
  agent::hosted_roles_config config;
  config.root_process = job.process;
  config.takes_over = who.takes_over;
  if (who.takes_over) config.rules.reattach_patience = reattach_patience;
  if (who.takes_over) config.returning = returning(*who.secrets);
  config.roots_of_same_job = who.secrets->roots_of_same_job();
  config.gathers = who.gathers;
  config.copies_may_wait = who.copies_may_wait;
  config.drains = bundles.drains();
  config.hosts_before = bundles.hosts_before();
  return config;
}

agent::hosted_roles_config config_of(const hosts_plan& plan, const common::job_context& job,
                                     const root_beats& beats, agent::hosted_roles_config config) {
  config.root_beats_at = beats.exchange->address();
  config.root = plan.own().name();
  config.root_cpus = plan.own().has_cpus() ? static_cast<std::uint32_t>(plan.own().cpus()) : usable_cpus();
  config.root_preemptible = plan.own().preemptible();
  config.root_takes = protocol::host_takes_of(plan.own().takes());
  config.root_machine = plan.own().machine();
  config.workers_need_gpus = job::device_of(job.spec) == job::device::cuda;
  config.root_gpus = static_cast<std::uint32_t>(job.gpus.numbers.size());
  config.threads_per_worker = static_cast<std::uint32_t>(job.spec.cluster().threads_per_worker());
  config.coordinator_moves = coordinator_moves(plan, job.spec);
  config.root_stores = held_stores(job.run_dir, job.ps_shards(), job.run);
  config.rules.start_patience = there_patience_of(job);
  for (const auto& host : plan.hosts.hosts())
    if (host.name() != config.root) config.hosts[host.name()] = static_cast<std::uint32_t>(host.cpus());
  for (int place = 0; place < plan.hosts.hosts_size(); ++place)
    config.joining.addresses[plan.hosts.hosts(place).name()] = plan.number_of(place);
  config.joining.root = config.root;
  if (!plan.hosts.has_join()) return config;
  config.joining.hosts_min = static_cast<std::size_t>(plan.hosts.join().hosts_min());
  const bool begins_anew = !config.gathers && !config.takes_over; // else roles have their places
  if (begins_anew)
    config.joining.hosts_min_staying = static_cast<std::size_t>(plan.hosts.join().hosts_min_staying());
  config.joining.hosts_max = static_cast<std::size_t>(plan.hosts.join().hosts_max());
  return config;
}

/// They note the hosts of the run in its record.
result<std::shared_ptr<host_bundles>> make_bundles(const host_bundles::parts& from,
                                                   const file_writing& write) {
  result<std::shared_ptr<host_bundles>> made{nullptr};
  const auto noted = write([&]() -> result<void> {
    made = host_bundles::make(from);
    if (!made) return tl::unexpected(made.error());
    return {};
  });
  if (!noted) return tl::unexpected(noted.error());
  return made;
}

/// Where a host does not come.
std::string way_out_of(const host_bundles& bundles) {
  const auto* lost = bundles.hosts_before().empty() ? "" : ", and what its stores have is lost";
  return fmt::format("; without that host: take it out of the list of hosts{}", lost);
}

/// Renews the certificate of the root's own agent after half of its lifetime.
std::function<void(protocol::time_point)> own_renewal(const std::shared_ptr<const job_identity>& identity,
                                                      const std::shared_ptr<security::tls_context>& own,
                                                      const hosts_plan& plan,
                                                      const std::shared_ptr<enrolment_desk>& desk) {
  const auto half = std::chrono::seconds{plan.hosts.certificate_lifetime_s()} / 2.0;
  const auto period = std::chrono::duration_cast<protocol::duration>(half);
  return [identity, own, desk = std::weak_ptr{desk}, host = plan.own().name(), period,
          due = common::now() + period](protocol::time_point now) mutable {
    if (now < due) return;
    due = now + period;
    const auto made = identity->issue({protocol::role_kind::agent, 0}, host);
    if (!made) return;
    static_cast<void>(own->renew(to_credentials(*made)));
    if (const auto door = desk.lock()) door->renew(to_credentials(*made));
  };
}

} // namespace

result<void> check_for_hosts(const spec::JobSpec& job, const std::optional<hosts_plan>& hosts) {
  if (hosts)
    if (auto fine = check_reachable(*hosts); !fine) return fine;
  if (hosts && job::placement_of(job) != job::placement::processes)
    return fail(
        error_code::bad_spec,
        "cluster.placement: with \"threads\" all roles are in one process, and so on one host: leave --hosts "
        "out, or let it be \"processes\"");
  if (auto reached = hosts ? result<void>{} : check_loopback(job); !reached) return reached;
  if (auto enough = check_process_limit(job, hosts_at_least(hosts)); !enough) return enough;
  const auto there = hosts_at_least(hosts);
  if (there == 1 && job::device_of(job) == job::device::cuda && !has_gpus_here(hosts))
    return fail(error_code::bad_usage,
                fmt::format("{}: host {}: workers on GPUs run on other hosts, and the job begins "
                            "without any: list one, or write join.hosts_min: 2 or more",
                            hosts->file, hosts->own().name()));
  if (replicas_on(job, there) <= there) return {};
  return fail(error_code::bad_spec,
              fmt::format("durability.replicas: {} stores of each PS shard are on as many hosts, and the job "
                          "has {}: name more in a list with --hosts, or let it be auto",
                          replicas_on(job, there), there));
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
  const auto beats_port = who.secrets->beats_port();
  const auto beats = who.secrets->start_beats(plan.own_number());
  if (!beats) return tl::unexpected(beats.error());
  if (who.takes_over) call_hosts(*who.secrets, *beats, beats_port, *job);
  if (auto kept = who.asks.write([&] { return who.secrets->keep(agent_address, *beats); }); !kept)
    return tl::unexpected(kept.error());
  auto giver = start_giver(plan, *job, who.own);
  if (!giver) return tl::unexpected(giver.error());
  const auto data_at = *giver ? (*giver)->address() : std::string{};
  auto made =
      make_bundles({plan, job, agent_address, identity, *beats, data_at, who.secrets}, who.asks.write);
  if (!made) return tl::unexpected(made.error());
  const auto bundles = std::move(*made);
  const auto desk = open_desk(plan, identity, bundles);
  if (!desk) return tl::unexpected(desk.error());
  auto commands = host_commands::create(plan, job->run_dir,
                                        [bundles](const auto& host) { return bundles->for_listed(host); });
  if (!commands) return tl::unexpected(commands.error());
  auto config = config_of(plan, *job, *beats, config_of_run(*job, *bundles, who));
  config.joining.way_to_join = way_to_join(plan, desk->get(), *job);
  auto launcher = std::make_shared<agent::routed_launcher>(agent::routed_launcher_options{
      .hosts = std::move(config),
      .here = std::move(here),
      .starter = *commands,
      .end_enrolment =
          [door = std::weak_ptr{*desk}](const std::string& host) {
            if (const auto there = door.lock()) there->let_go(host);
          },
      .issue = [identity](const auto& role, const auto& host) { return identity->issue(role, host); },
      .beats = beats->exchange,
      .beat_key = beats->key,
      .keep_own_fresh = own_renewal(identity, who.own, plan, *desk),
      .data_givers_are =
          [giver = *giver](const auto& givers) {
            if (giver) giver->others_are(givers);
          },
      .may_join = who.asks.may_join,
      .run_dir = job->run_dir,
      .folder_of = [bundles](const auto& host) { return bundles->folder_on(host); }});
  return std::unique_ptr<hosts_run>{new hosts_run(std::move(*commands), std::move(launcher), *desk, bundles,
                                                  there_patience_of(*job), way_out_of(*bundles),
                                                  who.takes_over)};
}

result<void> hosts_run::open(const protocol::agent_actor& agent) {
  return desk_ ? desk_->open(agent, launcher_) : result<void>{};
}

result<join_token> hosts_run::make_token(std::chrono::seconds lifetime) const {
  if (!desk_)
    return fail(
        error_code::bad_usage,
        "no host may join this job: its list of hosts has no 'join:'; stop it, and resume it with a list "
        "that has");
  auto text = desk_->make_token(lifetime);
  if (!text) return tl::unexpected(text.error());
  return join_token{std::move(*text), desk_->address()};
}

result<void> hosts_run::wait_until_there(run_observer& observer,
                                         const std::function<result<void>()>& meanwhile) {
  const auto began = std::chrono::steady_clock::now();
  auto due = began + there_patience_;
  std::string told;
  for (;;) {
    if (auto goes_on = meanwhile(); !goes_on) return goes_on;
    auto there = launcher_->waiting().wait_until_there(hosts_look_period);
    if (there) return there;
    auto waits = launcher_->waiting().awaited();
    if (!waits.empty()) // somebody has to bring them: that may take long
      due = std::chrono::steady_clock::now() + there_patience_;
    else if (there.error().code == error_code::timed_out &&
             std::chrono::steady_clock::now() >= began + tell_after)
      waits = fmt::format("{}; they are waited for, {} s at most", there.error().message,
                          there_patience_.count());
    if (!waits.empty() && waits != told) observer.waits(told = std::move(waits));
    const bool is_over = std::chrono::steady_clock::now() >= due;
    if (is_over || there.error().code != error_code::timed_out)
      return fail(takes_over_ ? error_code::timed_out : there.error().code, there.error().message + way_out_);
    const auto wish = observer.asked_to_stop();
    if (wish && wish->leaves_hosts && takes_over_) wish->end_now();
    if (wish) return fail(error_code::interrupted, wish->reason);
  }
}

agent::kept_drains hosts_run::drains() const {
  return {bundles_->drains(), [bundles = bundles_](const auto& all) { return bundles->keep_drains(all); }};
}

result<void> hosts_run::change_record(const std::function<void(records::RunRecord&)>& change,
                                      bool is_same_job) {
  return is_same_job ? bundles_->change_record(change) : bundles_->change_job(change);
}

void hosts_run::close_door() {
  if (desk_) desk_->close();
}

void hosts_run::wait_until_gone(std::chrono::seconds patience) {
  close_door();
  commands_->wait_for_end(patience);
  launcher_->waiting().wait_until_gone(patience);
}

} // namespace dlrun::runtime
