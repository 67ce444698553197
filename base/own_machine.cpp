#include "base/own_machine.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace dlrun::base {
namespace {

/// Keeps what allows less.
void keep_least(std::optional<detail::limiting_cgroup>& least, detail::limiting_cgroup one) {
  if (!least || one.limit < least->limit) least = std::move(one);
}

/// Of a cgroup and those around it, up to `top`. A word ("max") is no limit.
std::optional<detail::limiting_cgroup> least_up_to(std::filesystem::path folder,
                                                   const std::filesystem::path& top, const char* name) {
  std::optional<detail::limiting_cgroup> least;
  for (;; folder = folder.parent_path()) {
    std::ifstream file(folder / name);
    if (std::uint64_t limit = 0; file >> limit) keep_least(least, {.limit = limit, .folder = folder});
    if (folder == top || !folder.has_relative_path()) return least;
  }
}

/// The number behind a word that begins a line; 0 where there is none.
std::uint64_t number_behind(std::string_view word, const std::filesystem::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    std::string first;
    if (std::uint64_t number = 0; words >> first && first == word && words >> number) return number;
  }
  return 0;
}

/// Is `controller` one of the words between the commas?
bool is_one_of(std::string_view controllers, std::string_view controller) {
  return fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) != std::string::npos;
}

std::optional<detail::limiting_cgroup> own_cgroup(const detail::cgroup_limit& of) {
  std::ifstream file{"/proc/self/cgroup"};
  const std::string cgroups{std::istreambuf_iterator<char>{file}, {}};
  return detail::least_cgroup(of, cgroups, "/sys/fs/cgroup");
}

std::uint64_t machine_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return pages * static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
}

} // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string kernel_boot() {
  std::ifstream in{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(in, id);
  return id;
}

/// Lines "NUMBER:CONTROLLERS:/PATH"; that of v2 has the number 0 and no controllers (cgroups(7)).
std::optional<detail::limiting_cgroup> detail::least_cgroup(const cgroup_limit& of, std::string_view cgroups,
                                                            const std::filesystem::path& mounted) {
  std::optional<limiting_cgroup> least;
  std::istringstream lines{std::string{cgroups}};
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    const bool is_v2 = controllers.empty();
    if (!is_v2 && !is_one_of(controllers, of.controller)) continue;
    const auto top = is_v2 ? mounted : mounted / of.controller;
    auto found = least_up_to(top.string() + path, top, is_v2 ? of.file_v2 : of.file_v1);
    if (!found) continue;
    found->is_v2 = is_v2;
    keep_least(least, std::move(*found));
  }
  return least;
}

std::uint64_t detail::memory_used_in(const limiting_cgroup& of) {
  std::ifstream file(of.folder / (of.is_v2 ? "memory.current" : "memory.usage_in_bytes"));
  std::uint64_t all = 0;
  file >> all;
  const auto idle =
      number_behind(of.is_v2 ? "inactive_file" : "total_inactive_file", of.folder / "memory.stat");
  return all - std::min(all, idle);
}

std::uint64_t usable_memory_bytes() {
  const auto there = machine_memory_bytes();
  const auto allowed = own_cgroup(detail::memory_bytes);
  return allowed ? std::min(there, allowed->limit) : there;
}

memory_use current_memory_use() {
  const auto there = machine_memory_bytes();
  if (const auto own = own_cgroup(detail::memory_bytes); own && own->limit < there)
    return {.used = detail::memory_used_in(*own), .limit = own->limit};
  constexpr std::uint64_t kib = 1024;
  const auto free = kib * number_behind("MemAvailable:", "/proc/meminfo");
  return {.used = there - std::min(there, free), .limit = there};
}

std::optional<std::uint64_t> cgroup_processes_max() {
  const auto own = own_cgroup(detail::processes);
  return own ? std::optional{own->limit} : std::nullopt;
}

} // namespace dlrun::base
