/// Which machine this is, and what this process may use of it.
#pragma once

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

namespace detail {
/// For tests: what the cgroups allow that a process is in, by the content of its /proc/PID/cgroup,
/// where those of v2, or the folder "memory" of v1, are mounted. Nothing when they allow any.
std::optional<std::uint64_t> cgroup_memory_bytes(std::string_view cgroups,
                                                 const std::filesystem::path& mounted);
} // namespace detail

} // namespace dlrun::base
