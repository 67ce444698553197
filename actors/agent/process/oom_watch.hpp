/// Whether the kernel kills for want of memory here.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace dlrun::agent {

/// A process that the kernel's OOM killer ends looks as if somebody had sent it SIGKILL. But the
/// cgroup counts such kills (`oom_kill` in memory.events of cgroup v2, for the memory of the host
/// and for the limit of a container alike). Where there is no such file nothing is ever seen. Not
/// thread-safe.
class oom_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit oom_watch(std::filesystem::path memory_events = of_this_process());
  /// The file of the cgroup that this process is in; empty without cgroup v2.
  static std::filesystem::path of_this_process();

  /// To be called now and then: what was counted a second ago is not the doing of a death that is
  /// seen now.
  void sample(time_point now);
  /// Whether something was killed between one and two seconds before the last sample, or later.
  bool killed_lately() const { return kills() > before_; }

private:
  std::uint64_t kills() const;

  std::filesystem::path file_;
  std::uint64_t before_;
  std::uint64_t newest_;
  time_point sampled_{};
};

} // namespace dlrun::agent
