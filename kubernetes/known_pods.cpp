#include "kubernetes/known_pods.hpp"

#include <algorithm>

namespace dlrun::kubernetes {

const pod_record* known_pods::find(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const std::vector<const pod_record*>& known_pods::of(pod_slot slot) const {
  static const std::vector<const pod_record*> none;
  const auto found = slots_.find(slot);
  return found == slots_.end() ? none : found->second;
}

/// Its slot is a label, which somebody may change.
void known_pods::put(const pod_record& pod) {
  if (const auto found = pods_.find(pod.uid); found != pods_.end() && found->second.slot == pod.slot) {
    found->second = pod;
    return;
  }
  erase(pod.uid);
  const auto& made = pods_.emplace(pod.uid, pod).first->second;
  auto& of = slots_[pod.slot];
  of.insert(std::ranges::lower_bound(of, pod.uid, {}, [](const auto* one) { return one->uid; }), &made);
}

void known_pods::erase(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  std::erase(slots_[found->second.slot], &found->second);
  pods_.erase(found);
}

} // namespace dlrun::kubernetes
