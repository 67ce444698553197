#include "actors/agent/host_trials.hpp"

#include <algorithm>

namespace dlrun::agent {
namespace {

constexpr std::uint32_t failed_starts_max = 2;
constexpr protocol::duration avoided_first = std::chrono::minutes(1);
constexpr protocol::duration avoided_longest = std::chrono::hours(1);

} // namespace

std::optional<protocol::duration> host_trials::on_failed(const std::string& host, protocol::time_point now) {
  auto& one = all_.try_emplace(host, trial{.next = avoided_first}).first->second;
  if (one.until || ++one.failures < failed_starts_max) return std::nullopt;
  const auto time = one.next;
  one = {.next = std::min(2 * time, avoided_longest), .until = now + time};
  return time;
}

bool host_trials::is_avoided(const std::string& host) const {
  const auto found = all_.find(host);
  return found != all_.end() && found->second.until.has_value();
}

std::vector<std::string> host_trials::over(protocol::time_point now) {
  std::vector<std::string> names;
  for (auto& [host, one] : all_) {
    if (!one.until || now < *one.until) continue;
    one.until.reset();
    names.push_back(host);
  }
  return names;
}

} // namespace dlrun::agent
