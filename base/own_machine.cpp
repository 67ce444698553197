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

/// Of a cgroup and those around it, up to `top`. A word ("max") is no limit.
std::optional<std::uint64_t> least_limit(std::filesystem::path folder, const std::filesystem::path& top,
                                         const char* name) {
  std::optional<std::uint64_t> least;
  for (;; folder = folder.parent_path()) {
    std::ifstream file(folder / name);
    if (std::uint64_t bytes = 0; file >> bytes) least = std::min(bytes, least.value_or(bytes));
    if (folder == top || !folder.has_relative_path()) return least;
  }
}

/// Is `controller` one of the words between the commas?
bool is_one_of(std::string_view controllers, std::string_view controller) {
  return fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) != std::string::npos;
}

std::optional<std::uint64_t> own_cgroup_limit(const detail::cgroup_limit& of) {
  std::ifstream file{"/proc/self/cgroup"};
  const std::string cgroups{std::istreambuf_iterator<char>{file}, {}};
  return detail::least_cgroup_limit(of, cgroups, "/sys/fs/cgroup");
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
std::optional<std::uint64_t> detail::least_cgroup_limit(const cgroup_limit& of, std::string_view cgroups,
                                                        const std::filesystem::path& mounted) {
  std::optional<std::uint64_t> least;
  std::istringstream lines{std::string{cgroups}};
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    const bool is_v2 = controllers.empty();
    if (!is_v2 && !is_one_of(controllers, of.controller)) continue;
    const auto top = is_v2 ? mounted : mounted / of.controller;
    const auto limit = least_limit(top.string() + path, top, is_v2 ? of.file_v2 : of.file_v1);
    if (limit) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

std::uint64_t usable_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto there = pages * static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return std::min(there, own_cgroup_limit(detail::memory_bytes).value_or(there));
}

std::optional<std::uint64_t> cgroup_processes_max() { return own_cgroup_limit(detail::processes); }

} // namespace dlrun::base
