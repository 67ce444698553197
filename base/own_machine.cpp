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

/// Is "memory" one of the words between the commas?
bool is_of_memory(std::string_view controllers) {
  return fmt::format(",{},", controllers).find(",memory,") != std::string::npos;
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
std::optional<std::uint64_t> detail::cgroup_memory_bytes(std::string_view cgroups,
                                                         const std::filesystem::path& mounted) {
  std::optional<std::uint64_t> least;
  std::istringstream lines{std::string{cgroups}};
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    const bool is_v2 = controllers.empty();
    if (!is_v2 && !is_of_memory(controllers)) continue;
    const auto top = is_v2 ? mounted : mounted / "memory";
    const auto limit = least_limit(top.string() + path, top, is_v2 ? "memory.max" : "memory.limit_in_bytes");
    if (limit) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

std::uint64_t usable_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto there = pages * static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  std::ifstream file{"/proc/self/cgroup"};
  const std::string cgroups{std::istreambuf_iterator<char>{file}, {}};
  return std::min(there, detail::cgroup_memory_bytes(cgroups, "/sys/fs/cgroup").value_or(there));
}

} // namespace dlrun::base
