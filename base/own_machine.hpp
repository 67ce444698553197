/// Which machine this is, and what this process may use of it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::base {

/// As the kernel calls it.
std::string host_name();

/// Of this start of its kernel, as 36 characters: no other machine and no other start has it. ""
/// where there is no /proc.
std::string kernel_boot();

/// Bytes of memory that this process may use: the machine's, or fewer where a cgroup that it is in,
/// or one around that, allows no more, as that of a container, a service or a batch job does.
/// Beyond them the kernel kills. 0 where the machine does not tell.
std::uint64_t usable_memory_bytes();

/// Memory that counts against what may be used, in bytes.
struct memory_use {
  std::uint64_t used = 0;  ///< without pages of files that nobody has used lately, as `kubectl top` counts
  std::uint64_t limit = 0; ///< 0: unknown

  bool operator==(const memory_use&) const = default;
};

/// Of the cgroup that allows the least, of those that this process is in; of the machine where none
/// of them allows less. Reads a few files of the kernel.
memory_use current_memory_use();

/// How many processes and threads a cgroup that this process is in, or one around that, allows at
/// once (pids.max), as that of a container or a service does. Nothing where they allow any number.
std::optional<std::uint64_t> cgroup_processes_max();

namespace detail {
/// A limit of cgroups: its controller, and its file there.
struct cgroup_limit {
  std::string_view controller;
  const char* file_v2;
  const char* file_v1;
};
inline constexpr cgroup_limit memory_bytes{"memory", "memory.max", "memory.limit_in_bytes"};
inline constexpr cgroup_limit processes{"pids", "pids.max", "pids.max"};

/// A cgroup that has a limit.
struct limiting_cgroup {
  std::uint64_t limit = 0;
  std::filesystem::path folder;
  bool is_v2 = false;
};

/// For tests: the cgroup that allows the least, of those that a process is in, by the content of
/// its /proc/PID/cgroup, where those of v2, or the folder with the name of the controller of v1,
/// are mounted. Nothing when they allow any.
std::optional<limiting_cgroup> least_cgroup(const cgroup_limit& of, std::string_view cgroups,
                                            const std::filesystem::path& mounted);

/// For tests: bytes in use there.
std::uint64_t memory_used_in(const limiting_cgroup& of);
} // namespace detail

} // namespace dlrun::base
