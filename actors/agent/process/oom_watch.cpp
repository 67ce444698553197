#include "actors/agent/process/oom_watch.hpp"

#include <fstream>
#include <string>

namespace dlrun::agent {
namespace {

constexpr auto sample_period = std::chrono::seconds(1);

} // namespace

oom_watch::oom_watch(std::filesystem::path memory_events)
    : file_(std::move(memory_events))
    , before_(kills())
    , newest_(before_) {}

std::filesystem::path oom_watch::of_this_process() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return "/sys/fs/cgroup" + line.substr(3) + "/memory.events";
  return {};
}

void oom_watch::sample(time_point now) {
  if (now - sampled_ < sample_period) return;
  sampled_ = now;
  before_ = newest_;
  newest_ = kills();
}

std::uint64_t oom_watch::kills() const {
  std::ifstream file(file_);
  std::string name;
  std::uint64_t count = 0;
  while (file >> name >> count)
    if (name == "oom_kill") return count;
  return 0;
}

} // namespace dlrun::agent
