#include "runtime/hosts_plan.hpp"

#include "actors/protocol/host_takes.hpp"
#include "base/os_error.hpp"
#include "job/choices.hpp"
#include "job/hosts_file.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <sched.h>
#include <set>
#include <sstream>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::string_view no_gpus = "none";

std::string to_number(const sockaddr* address) {
  char text[NI_MAXHOST] = {};
  const auto known =
      ::getnameinfo(address, sizeof(sockaddr_in), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return known == 0 ? text : "";
}

/// The numbers that a name or number stands for.
std::set<std::string> numbers_of(const std::string& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET; // tensors go over IPv4 alone
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  std::set<std::string> all;
  if (::getaddrinfo(address.c_str(), nullptr, &wanted, &first) != 0) return all;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{first, ::freeaddrinfo};
  for (const auto* one = first; one != nullptr; one = one->ai_next) all.insert(to_number(one->ai_addr));
  return all;
}

/// Which of them this is; fills in their numbers.
result<int> find_here(hosts_plan& plan) {
  const auto own = own_numbers();
  std::vector<int> found;
  for (int i = 0; i < plan.hosts.hosts_size(); ++i) {
    const auto& host = plan.hosts.hosts(i);
    const auto numbers = numbers_of(host.address());
    if (numbers.empty())
      return fail(
          error_code::bad_usage,
          fmt::format("{}: host {}: nobody knows an IPv4 address of '{}': write the number, or add the name "
                      "to /etc/hosts or the name service",
                      plan.file, host.name(), host.address()));
    const auto mine = std::ranges::find_if(numbers, [&](const auto& one) { return own.contains(one); });
    if (mine != numbers.end()) found.push_back(i);
    plan.numbers.push_back(mine != numbers.end() ? *mine : *numbers.begin());
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    return fail(
        error_code::bad_usage,
        fmt::format("{}: no host has an address of this machine, which runs the job's coordinator: add "
                    "it, with one of {}",
                    plan.file, fmt::join(own, ", ")));
  return fail(error_code::bad_usage,
              fmt::format("{}: hosts {} and {} are both this machine: list each host once", plan.file,
                          plan.hosts.hosts(found[0]).name(), plan.hosts.hosts(found[1]).name()));
}

/// Of another host than the root's there would be no use.
result<void> check_gpus(const hosts_plan& plan) {
  for (int place = 0; place < plan.hosts.hosts_size(); ++place)
    if (const auto& host = plan.hosts.hosts(place); host.gpus() == no_gpus && place != plan.here)
      return fail(error_code::bad_usage,
                  fmt::format("{}: host {}: gpus: none is for the host where the command runs, {}: leave the "
                              "key out, or take the host out of the list",
                              plan.file, host.name(), plan.own().name()));
  return {};
}

/// Where a host has none for the job.
result<void> check_cores(const hosts_plan& plan) {
  for (int place = 0; place < plan.hosts.hosts_size(); ++place) {
    const auto& host = plan.hosts.hosts(place);
    if (!host.has_cpus() || host.cpus() > 0) continue;
    if (place != plan.here)
      return fail(error_code::bad_usage,
                  fmt::format("{}: host {}: cpus: 0 is for the host where the command runs, {}: give it 1 or "
                              "more, or leave it out of the list",
                              plan.file, host.name(), plan.own().name()));
    if (plan.hosts.hosts_size() == 1 && plan.hosts.join().hosts_min() < 2)
      return fail(
          error_code::bad_usage,
          fmt::format("{}: host {}: with cpus: 0 the job runs on other hosts, and begins without any: "
                      "list one, or write join.hosts_min: 2 or more",
                      plan.file, host.name()));
  }
  return {};
}

/// For which "self" stands.
result<std::string> find_self(const std::string& given, const std::string& file) {
  auto own = own_numbers();
  if (given.empty()) std::erase_if(own, is_loopback);
  if (!given.empty() && own.contains(given)) return given;
  if (given.empty() && own.size() == 1) return *own.begin();
  if (!given.empty())
    return fail(error_code::bad_usage,
                fmt::format("--address {}: no interface of this machine has that number: name one of {}",
                            given, fmt::join(own, ", ")));
  return fail(
      error_code::bad_usage,
      own.empty()
          ? fmt::format("{}: 'self' stands for the number of this machine, which has none but that of "
                        "itself: connect it, or name one with --address",
                        file)
          : fmt::format("{}: 'self' stands for the number of this machine, which has several: name one "
                        "with --address, of {}",
                        file, fmt::join(own, ", ")));
}

/// Puts the number in the place of "self".
result<void> fill_in_self(hosts_plan& plan, const std::string& given) {
  if (!job::names_self(plan.hosts)) {
    if (given.empty()) return {};
    return fail(
        error_code::bad_usage,
        fmt::format("--address {}: it says what 'self' stands for in the list of hosts, and {} does not "
                    "have that: write 'address: self' there, or leave --address out",
                    given, plan.file));
  }
  const auto self = find_self(given, plan.file);
  if (!self) return tl::unexpected(self.error());
  job::name_self(plan.hosts, *self);
  return {};
}

/// As a shell finds it.
result<std::string> find_program(const std::string& word, const std::string& file) {
  const auto is_program = [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0; };
  if (word.find('/') != std::string::npos && is_program(word))
    return std::filesystem::absolute(word).string();
  const char* path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "/usr/bin:/bin" : path};
  for (std::string folder; word.find('/') == std::string::npos && std::getline(folders, folder, ':');)
    if (const auto full = (std::filesystem::path{folder} / word).string(); is_program(full)) return full;
  return fail(
      error_code::bad_usage,
      fmt::format("{}: start: there is no program '{}' here to start agents with: install it, or write "
                  "another command there",
                  file, word));
}

/// It may go through a shell of the other host, as ssh's words do.
result<std::string> program_on_hosts(const hosts_plan& plan) {
  std::error_code why;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", why).string();
  const auto program = plan.hosts.has_program() ? plan.hosts.program() : own;
  const auto is_plain = [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) ||
           std::string_view{"/._-+"}.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!program.empty() && std::ranges::all_of(program, is_plain)) return program;
  return fail(
      error_code::bad_usage,
      fmt::format("{}: program: the path of dlrun on the other hosts may have letters, digits and / . "
                  "_ - + only; '{}' has others",
                  plan.file, program));
}

} // namespace

std::vector<std::string> hosts_plan::command_for(const spec::HostSpec& host) const {
  auto words = job::start_command(hosts, host, {agent_program, "agent"});
  words.front() = starter_program;
  return words;
}

result<hosts_plan> plan_hosts(const std::filesystem::path& file, const std::string& self) {
  auto hosts = job::read_hosts(file);
  if (!hosts) return tl::unexpected(hosts.error());
  hosts_plan plan{.file = file.string(),
                  .hosts = std::move(*hosts),
                  .numbers = {},
                  .starter_program = {},
                  .agent_program = {}};
  if (auto filled = fill_in_self(plan, self); !filled) return tl::unexpected(filled.error());
  const auto here = find_here(plan);
  if (!here) return tl::unexpected(here.error());
  plan.here = *here;
  for (const auto& check : {check_cores, check_gpus})
    if (auto fine = check(plan); !fine) return tl::unexpected(fine.error());
  if (plan.hosts.has_join() && plan.hosts.hosts_size() == 1) return plan; // there is nobody to start
  auto starter = find_program(plan.hosts.start(0), plan.file);
  if (!starter) return tl::unexpected(starter.error());
  plan.starter_program = std::move(*starter);
  auto program = program_on_hosts(plan);
  if (!program) return tl::unexpected(program.error());
  plan.agent_program = std::move(*program);
  return plan;
}

result<std::optional<hosts_plan>> plan_hosts_if_named(const std::string& file, const std::string& self,
                                                      const std::string& machine) {
  if (file.empty()) return std::nullopt;
  auto plan = plan_hosts(file, self);
  if (!plan) return tl::unexpected(plan.error());
  if (!machine.empty()) plan->hosts.mutable_hosts(plan->here)->set_machine(machine);
  return std::optional{std::move(*plan)};
}

std::size_t hosts_at_least(const std::optional<hosts_plan>& plan) {
  if (!plan) return 1;
  return static_cast<std::size_t>(
      std::max<std::int64_t>(plan->hosts.hosts_size(), plan->hosts.join().hosts_min()));
}

bool hosts_plan::has_own_gpus() const {
  return own().gpus() != no_gpus && protocol::host_takes_of(own().takes()) != protocol::host_takes::ps_shards;
}

bool has_gpus_here(const std::optional<hosts_plan>& plan) { return !plan || plan->has_own_gpus(); }

bool settles_gpus_here(const std::optional<hosts_plan>& plan, const spec::JobSpec& job) {
  if (job::device_of(job) != job::device::automatic) return has_gpus_here(plan);
  return !plan || plan->own().gpus() != no_gpus;
}

bool coordinator_moves(const hosts_plan& plan, const spec::JobSpec& job) {
  return job.cluster().journal().has_etcd() && plan.hosts.coordinator() != "root";
}

std::set<std::string> own_numbers() {
  std::set<std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner{first, ::freeifaddrs};
  for (const auto* one = first; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET) all.insert(to_number(one->ifa_addr));
  return all;
}

std::string folder_for_new_run(const spec::HostSpec& host, const std::filesystem::path& run_dir) {
  return host.has_folder() ? host.folder() : (run_dir / fmt::format("host-{}", host.name())).string();
}

std::uint32_t usable_cpus() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&usable), 1));
}

} // namespace dlrun::runtime
