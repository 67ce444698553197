#include "runtime/doctor.hpp"

#include "actors/agent/enrolment/enrolment_server.hpp"
#include "actors/agent/process/process_spawner.hpp"
#include "actors/common/fingerprint.hpp"
#include "base/random.hpp"
#include "engine/cpu_level.hpp"
#include "job/choices.hpp"
#include "runtime/examined_host.hpp"
#include "runtime/host_bundle.hpp"
#include "runtime/root_beats.hpp"
#include "runtime/run_record.hpp"
#include "security/certificate_authority.hpp"
#include "transport/run_token.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <set>

namespace dlrun::runtime {
namespace {

using nlohmann::json;

/// A host decodes and compares all of the data first.
constexpr auto facts_patience = std::chrono::minutes(5);
constexpr auto answer_patience = std::chrono::seconds(5);

/// What all hosts are told alike. Hashes all of the data.
bootstrap::HostBundle common_bundle(const doctor_options& options, std::uint64_t boot) {
  bootstrap::HostBundle bundle;
  bundle.set_examine(true);
  bundle.set_root(options.hosts.own().name());
  bundle.set_agent_process(boot);
  bundle.set_run_token(transport::run_token{}.to_bytes());
  bundle.set_hosts(static_cast<std::uint32_t>(options.hosts.hosts.hosts_size()));
  if (!options.job) return bundle;
  *bundle.mutable_spec() = options.job->spec;
  *bundle.mutable_record() = make_record(*options.job);
  return bundle;
}

/// The examination of all hosts.
class doctor {
public:
  doctor(const doctor_options& options, const std::function<void(const finding&)>& tell)
      : options_{options}
      , tell_{tell} {}

  result<std::size_t> run() {
    auto spawner = agent::process_spawner::create();
    if (!spawner) return tl::unexpected(spawner.error());
    spawner_ = std::move(*spawner);
    auto beats = start_beats(options_.hosts.own_number(), boot_);
    if (!beats) return tl::unexpected(beats.error());
    beats_ = std::move(*beats);
    const auto count = options_.hosts.hosts.hosts_size();
    for (int place = 0; place < count; ++place) look_at_name(place);
    const auto shared = common_bundle(options_, boot_);
    for (int place = 0; place < count; ++place) start(place, shared);
    for (auto& one : hosts_) look_at_facts(one);
    for (auto& one : hosts_) look_at_clock(one);
    for (auto& from : hosts_)
      for (const auto& to : hosts_)
        if (from.place != to.place) look_at_link(from, to);
    for (const auto& one : hosts_) look_at_beats(one);
    look_at_door();
    hosts_.clear();
    return wrong_;
  }

private:
  struct patient {
    int place = 0;
    std::unique_ptr<examined_host> host;
    int port = 0; ///< 0: it has said nothing, or cannot be reached
    bool beats = false;
  };

  const spec::HostSpec& spec_of(int place) const { return options_.hosts.hosts.hosts(place); }
  const std::string& number_of(int place) const { return options_.hosts.number_of(place); }

  void tell(int place, std::string check, std::string wrong, std::string note = {}) {
    if (!wrong.empty()) ++wrong_;
    tell_({spec_of(place).name(), std::move(check), std::move(wrong), std::move(note)});
  }

  void look_at_name(int place) {
    const bool is_unreachable = is_loopback(number_of(place)) && options_.hosts.hosts.hosts_size() > 1;
    tell(place, "name",
         is_unreachable
             ? fmt::format("'{}' is {} here, which no other host reaches: correct /etc/hosts, or write "
                           "the number of its interface into the list",
                           spec_of(place).address(), number_of(place))
             : "");
  }

  void start(int place, bootstrap::HostBundle bundle) {
    const bool is_here = place == options_.hosts.here;
    const auto& host = spec_of(place);
    auto words =
        is_here ? std::vector<std::string>{"/proc/self/exe", "agent"} : options_.hosts.command_for(host);
    bundle.set_host(host.name());
    bundle.set_address(number_of(place));
    bundle.set_folder(is_here ? options_.run_dir.string() : folder_for_new_run(host, options_.run_dir));
    tell_of_beats(beats_, bundle);
    auto started = examined_host::start(*spawner_, std::move(words), written_bundle(bundle));
    if (!started) return tell(place, "start", started.error().message);
    hosts_.push_back({place, std::move(*started)});
  }

  void look_at_facts(patient& one) {
    const auto facts = one.host->hear(facts_patience);
    tell(one.place, "start", facts ? "" : facts.error().message);
    if (!facts) return;
    one.port = facts->value("port", 0);
    const auto build = facts->value("build", "");
    tell(one.place, "build",
         build == own_build_
             ? ""
             : fmt::format("it would compute other bits: {} there, {} here; install the same dlrun, and "
                           "take hosts with the same processor",
                           build, own_build_));
    for (const auto* check : {"address", "folder", "disk", "memory", "files", "processes"})
      tell(one.place, check, facts->value(check, ""));
    if (options_.job) tell(one.place, "data", facts->value("data", ""), facts->value("data_note", ""));
    const bool has_gpus = one.place != options_.hosts.here || options_.hosts.has_own_gpus();
    if (options_.job && job::device_of(options_.job->spec) == job::device::cuda && has_gpus)
      tell(one.place, "gpus", facts->value("gpus", ""));
    watch_beats(one, *facts);
  }

  int threads() const {
    return options_.job ? static_cast<int>(options_.job->spec.cluster().threads_per_worker()) : 1;
  }

  void look_at_clock(patient& one) {
    using std::chrono::duration;
    if (one.port == 0) return;
    const auto before = std::chrono::system_clock::now();
    const auto said = one.host->ask("time", answer_patience);
    if (!said) return tell(one.place, "clock", said.error().message);
    const auto middle = before + (std::chrono::system_clock::now() - before) / 2;
    const double ahead_s = static_cast<double>(said->value("time_us", std::int64_t{0})) / 1e6 -
                           duration<double>(middle.time_since_epoch()).count();
    const double bound_s = std::min(duration<double>(security::clock_skew).count(),
                                    static_cast<double>(options_.hosts.hosts.certificate_lifetime_s()) / 4);
    tell(one.place, "clock",
         std::abs(ahead_s) <= bound_s
             ? ""
             : fmt::format("it is {:.1f} s {} this host's, and certificates allow {:.1f} s: set both by NTP",
                           std::abs(ahead_s), ahead_s > 0 ? "ahead of" : "behind", bound_s));
  }

  void look_at_link(patient& from, const patient& to) {
    if (from.port == 0 || to.port == 0) return;
    const auto check = fmt::format("link to {}", spec_of(to.place).name());
    const auto said =
        from.host->ask(fmt::format("reach {}:{}", number_of(to.place), to.port), answer_patience);
    if (!said) return tell(from.place, check, said.error().message);
    const auto why = said->value("why", "");
    tell(from.place, check,
         why.empty() ? ""
                     : fmt::format("no TCP connection to {}: {}; open all ports between the hosts in the "
                                   "firewalls of both, or write the addresses of another network",
                                   number_of(to.place), why));
  }

  /// Where hosts join by themselves.
  void look_at_door() {
    if (!options_.hosts.hosts.has_join()) return;
    const auto& listen = options_.hosts.hosts.join().listen();
    if (is_loopback(listen))
      return tell(
          options_.hosts.here, "join.listen",
          fmt::format("no other host reaches {}: name the number of an interface of this host", listen));
    const auto door = agent::listen_for_enrolments(listen);
    tell(options_.hosts.here, "join.listen", door ? "" : door.error().message);
  }

  // ---- beats, which go between this host and each other

  void watch_beats(patient& one, const json& facts) {
    if (const auto wrong = facts.value("beats", ""); !wrong.empty()) return tell(one.place, "beats", wrong);
    const auto boot = facts.value("boot", std::uint64_t{0});
    if (boot == 0) return;
    const auto& host = spec_of(one.place).name();
    const auto watched = beats_.exchange->watch(agent::host_seen_by_root(beats_.key, host, boot),
                                                [this, host](const agent::sighting& seen) {
                                                  if (seen.seen != agent::sight::there) return;
                                                  const std::scoped_lock lock{mutex_};
                                                  answered_.insert(host);
                                                  changed_.notify_all();
                                                });
    one.beats = watched.has_value();
  }

  void look_at_beats(const patient& one) {
    if (!one.beats) return;
    const auto& host = spec_of(one.place).name();
    std::unique_lock lock{mutex_};
    const bool passes = changed_.wait_for(lock, answer_patience, [&] { return answered_.contains(host); });
    lock.unlock();
    tell(one.place, "beats",
         passes ? ""
                : fmt::format("no UDP passes from it to {}, a port of host {}, and back: its loss would be "
                              "noticed late; let UDP pass between the two in the firewalls of both",
                              beats_.exchange->address(), options_.hosts.own().name()));
  }

  const doctor_options& options_;
  const std::function<void(const finding&)>& tell_;
  const std::uint64_t boot_ = base::random_number();
  const std::string own_build_ = common::build_here(threads()).fingerprint;
  std::unique_ptr<agent::process_spawner> spawner_;
  std::vector<patient> hosts_;
  std::size_t wrong_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> answered_; ///< hosts that answer beats; guarded by mutex_
  root_beats beats_;               ///< last: its thread uses the members above
};

} // namespace

result<std::size_t> examine_hosts(const doctor_options& options,
                                  const std::function<void(const finding&)>& tell) {
  if (options.job)
    if (auto held = engine::hold_to_cpu_level(options.job->spec.cluster().cpu_level()); !held)
      return tl::unexpected(held.error());
  return doctor{options, tell}.run();
}

} // namespace dlrun::runtime
