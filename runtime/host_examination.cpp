#include "runtime/host_examination.hpp"

#include "actors/common/fingerprint.hpp"
#include "actors/protocol/host_takes.hpp"
#include "base/ipv4_address.hpp"
#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/random.hpp"
#include "base/reserve_bytes.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"
#include "engine/cpu_level.hpp"
#include "runtime/descriptor_limit.hpp"
#include "runtime/device_choice.hpp"
#include "runtime/host_data.hpp"
#include "runtime/host_folder.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/process_limit.hpp"
#include "runtime/root_beats.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <vector>

namespace dlrun::runtime {
namespace {

using nlohmann::json;

constexpr int backlog = 16;
constexpr auto reach_patience_ms = 2000;
constexpr std::uint64_t disk_bytes_min = std::uint64_t{1} << 30;
/// Of memory that processes share: that of a small model.
constexpr std::uint64_t shared_bytes_min = std::uint64_t{64} << 20;
/// Where no job says how many it needs.
constexpr std::uint64_t files_min = 1024;

std::int64_t time_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

const sockaddr* as_socket_address(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// A socket on which others try to reach this host, as roles will.
result<base::unique_fd> listen_at(const std::string& number) {
  const auto address = base::parse_ipv4_address(number + ":0");
  base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!address || !socket || ::bind(socket.get(), as_socket_address(*address), sizeof *address) != 0 ||
      ::listen(socket.get(), backlog) != 0)
    return fail(error_code::bad_usage,
                fmt::format("no interface of the host has the address {}: write one of {} into the list",
                            number, fmt::join(own_numbers(), ", ")));
  return socket;
}

int port_of(int socket) {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.sin_port);
}

/// @returns "" when a connection comes about, else why not.
std::string reach(const std::string& where) {
  const auto address = base::parse_ipv4_address(where);
  const base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!address || !socket) return "there is no such address";
  if (::connect(socket.get(), as_socket_address(*address), sizeof *address) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd watched{socket.get(), POLLOUT, 0};
  if (::poll(&watched, 1, reach_patience_ms) <= 0) return "no answer within 2 s";
  int wrong = 0;
  socklen_t size = sizeof wrong;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &wrong, &size);
  return wrong == 0 ? "" : std::strerror(wrong);
}

/// Whether beats pass the root sees, where they end.
struct own_beats {
  std::uint64_t boot = 0; ///< 0: none are sent
  std::unique_ptr<agent::beat_exchange> exchange;
  std::string wrong;
};

own_beats begin_beats(const bootstrap::HostBundle& bundle) {
  if (bundle.host() == bundle.root()) return {};
  const auto boot = base::random_number();
  auto exchange = agent::beat_exchange::start({.address = bundle.address(), .boot = boot});
  if (!exchange) return {0, nullptr, exchange.error().message};
  if (const auto begun = (*exchange)->watch(root_of(bundle), [](const agent::sighting&) {}); !begun)
    return {0, nullptr, begun.error().message};
  return {boot, std::move(*exchange), {}};
}

// ---- checks: "" where all is well

/// The folder, or what of its path is there.
std::filesystem::path there_of(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

/// Of what is in the place of the folder; that of the root is looked at when the run begins.
std::string check_content(const bootstrap::HostBundle& bundle) {
  if (bundle.host() == bundle.root()) return "";
  const std::filesystem::path folder{bundle.folder()};
  std::error_code why;
  if (!std::filesystem::exists(folder, why))
    return why ? fmt::format("'{}' cannot be a folder ({}): name another one in the list", folder.string(),
                             why.message())
               : "";
  if (std::filesystem::is_empty(folder, why) || why) return "";
  if (host_folder::is_of_a_run(folder)) return "";
  return fmt::format("there is something in '{}' that is of no run: remove it, or name another folder in the "
                     "list",
                     folder.string());
}

std::string check_folder(const bootstrap::HostBundle& bundle) {
  const auto there = there_of(bundle.folder());
  std::error_code ignored;
  if (!std::filesystem::is_directory(there, ignored))
    return fmt::format("'{}' is no folder: remove it, or name another folder in the list", there.string());
  if (::access(there.c_str(), W_OK | X_OK) == 0) return check_content(bundle);
  return fmt::format("nothing can be written into '{}' ({}): give the user the right, or name another "
                     "folder in the list",
                     there.string(), std::strerror(errno));
}

std::string check_disk(const bootstrap::HostBundle& bundle) {
  const auto there = there_of(bundle.folder());
  struct statvfs found {};
  if (::statvfs(there.c_str(), &found) != 0)
    return fmt::format("'{}': {}", there.string(), std::strerror(errno));
  const auto bytes = std::uint64_t{found.f_bavail} * found.f_frsize;
  if (bytes >= disk_bytes_min) return "";
  return fmt::format("the disk of '{}' has {} MiB left and should have {}: make room, or name another folder "
                     "in the list",
                     there.string(), bytes >> 20, disk_bytes_min >> 20);
}

std::string check_memory() {
  const base::unique_fd memory{::memfd_create("dlrun-doctor", MFD_CLOEXEC)};
  std::signal(SIGXFSZ, SIG_IGN);
  if (memory && base::reserve_bytes(memory.get(), shared_bytes_min) == 0) return "";
  return fmt::format("processes cannot share {} MiB of memory: raise the limits of memory and file size "
                     "(ulimit -f) there, or free some",
                     shared_bytes_min >> 20);
}

std::string check_files(const bootstrap::HostBundle& bundle) {
  if (bundle.has_spec()) {
    const auto enough = check_descriptor_limit(bundle.spec());
    return enough ? "" : enough.error().message;
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files_min) return "";
  return fmt::format(
      "a process may have {} files open, and should be allowed {}: raise the limit (ulimit -n)",
      limit.rlim_cur, files_min);
}

std::string check_processes(const bootstrap::HostBundle& bundle) {
  if (!bundle.has_spec()) return "";
  const auto enough = check_process_limit(bundle.spec(), std::max(1U, bundle.hosts()));
  return enough ? "" : enough.error().message;
}

/// What is wrong with the data, or else what a run would give the host of it.
struct data_finding {
  std::string wrong;
  std::string note;
};

data_finding check_data(const bootstrap::HostBundle& bundle) {
  if (!bundle.has_spec()) return {};
  const auto here = look_at_data(bundle);
  if (!here) return {here.error().message, {}};
  const auto missing = here->missing_bytes();
  if (missing == 0) {
    const auto job = prepare_with(bundle.spec(), *here);
    return {job ? "" : job.error().message, {}};
  }
  if (const auto fits = check_can_be_given(bundle, *here); !fits) return {fits.error().message, {}};
  return {{}, fmt::format("{} bytes are fetched from host {}: {}", missing, bundle.root(), here->why())};
}

/// What it has to have for cluster.device: cuda.
std::string check_gpus(const bootstrap::HostBundle& bundle) {
  if (!bundle.has_spec() || protocol::host_takes_of(bundle.takes()) == protocol::host_takes::ps_shards)
    return "";
  const auto gpus = open_gpus(bundle.spec());
  return gpus ? "" : gpus.error().message;
}

// ---- what is said

result<void> say(int output, const json& what) {
  const auto line =
      fmt::format("{}{}\n", examination_mark, what.dump(-1, ' ', false, json::error_handler_t::replace));
  if (base::write_all(output, line)) return {};
  return base::fail_errno("cannot answer");
}

json facts_of(const bootstrap::HostBundle& bundle, const result<base::unique_fd>& door,
              const own_beats& beats) {
  const auto data = check_data(bundle);
  // Where the processor has it not, the build is told to differ.
  static_cast<void>(engine::hold_to_cpu_level(bundle.spec().cluster().cpu_level()));
  const auto threads = bundle.has_spec() ? static_cast<int>(bundle.spec().cluster().threads_per_worker()) : 1;
  return {{"build", common::build_here(threads).fingerprint},
          {"port", door ? port_of(door->get()) : 0},
          {"address", door ? "" : door.error().message},
          {"boot", beats.boot},
          {"beats", beats.wrong},
          {"folder", check_folder(bundle)},
          {"disk", check_disk(bundle)},
          {"memory", check_memory()},
          {"files", check_files(bundle)},
          {"processes", check_processes(bundle)},
          {"gpus", check_gpus(bundle)},
          {"data", data.wrong},
          {"data_note", data.note}};
}

json answer_to(const std::string& question) {
  constexpr std::string_view reach_word = "reach ";
  if (question.starts_with(reach_word)) return {{"why", reach(question.substr(reach_word.size()))}};
  return {{"time_us", time_us()}};
}

/// Questions, one a line; whoever connects meanwhile is let in and sent away.
result<void> serve(int input, int output, base::unique_fd door) {
  base::listener listener{std::move(door)};
  std::string asked;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    std::vector<pollfd> watched{{input, POLLIN, 0}};
    listener.watch(watched, true, now); // of a pause the end is not waited for: questions come soon
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR)
      return base::fail_errno("cannot wait");
    if (watched[1].revents != 0) listener.accept_waiting(now, [](base::unique_fd) { return true; });
    if (watched[0].revents == 0) continue;
    char letter = 0;
    const auto got = ::read(input, &letter, 1);
    if (got <= 0) return {};
    if (letter != '\n') {
      asked += letter;
    } else if (auto said = say(output, answer_to(std::exchange(asked, {}))); !said) {
      return said;
    }
  }
}

} // namespace

result<void> examine_here(const bootstrap::HostBundle& bundle, int input, int output) {
  auto door = listen_at(bundle.address());
  const auto beats = door ? begin_beats(bundle) : own_beats{};
  if (auto said = say(output, facts_of(bundle, door, beats)); !said) return said;
  return serve(input, output, door ? std::move(*door) : base::unique_fd{});
}

} // namespace dlrun::runtime
