#include "kubernetes/silent_pods.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::kubernetes {
namespace {

constexpr std::size_t named_max = 5; ///< of pods that are silent together

bool is_silent(const pod_record& pod, const host_sights& hosts) {
  if (!is_alive(pod) || !pod.runs) return false;
  const auto found = hosts.find(pod.slot);
  if (found == hosts.end()) return true;
  const auto& host = found->second;
  return host.standing == host_standing::away &&
         (pod.address.empty() || (host.address != pod.address && host.turned_away != pod.address));
}

std::string named(const pod_record& pod) {
  return fmt::format("{} ({})", pod.name, pod.address.empty() ? "without an address" : pod.address);
}

/// "x-hosts-0-1 (10.0.0.5), x-hosts-1-1 (10.0.0.6) and 7 others".
std::string named(const std::vector<const pod_record*>& pods) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pods.size(), named_max); ++i)
    text += (i == 0 ? "" : ", ") + named(*pods[i]);
  return pods.size() <= named_max ? text : fmt::format("{} and {} others", text, pods.size() - named_max);
}

} // namespace

std::vector<std::string> silent_pods::look(const std::map<std::string, pod_record>& pods,
                                           const host_sights& hosts, time_point now) {
  std::vector<const pod_record*> late, news;
  std::map<std::string, silence> still;
  is_in_doubt_ = false;
  for (const auto& [uid, pod] : pods) {
    if (!is_silent(pod, hosts)) continue;
    const auto known = silences_.find(uid);
    auto& one = still.emplace(uid, known == silences_.end() ? silence{now} : known->second).first->second;
    if (now - one.since >= rules_.patience / 2 && !std::exchange(one.is_doubted, true)) is_in_doubt_ = true;
    if (now - one.since < rules_.patience) continue;
    late.push_back(&pod);
    if (!std::exchange(one.is_told, true)) news.push_back(&pod);
  }
  if (is_in_doubt_) // who is asked tells of all: a thousand pods are silent one after the other
    for (auto& [uid, one] : still) one.is_doubted |= now - one.since >= rules_.patience / 4;
  silences_ = std::move(still);
  told_ = text_of(late);
  return text_of(news);
}

std::vector<std::string> silent_pods::text_of(const std::vector<const pod_record*>& pods) const {
  if (pods.empty()) return {};
  const auto& first = *pods.front();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rules_.patience).count();
  const auto silent =
      pods.size() == 1
          ? fmt::format("pod {} has run for {} s, and its host has not joined: it", named(first), seconds)
          : fmt::format("{} pods have run for {} s, and their hosts have not joined: {}; each", pods.size(),
                        seconds, named(pods));
  return {
      fmt::format("{} has to reach {}; a NetworkPolicy or the network plugin may be in the way, or it has "
                  "another key ('kubectl logs {}' says what it tries)",
                  silent, rules_.root, first.name)};
}

} // namespace dlrun::kubernetes
