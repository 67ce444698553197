#include "kubernetes/pod_admission.hpp"

#include <fmt/format.h>
#include <utility>

namespace dlrun::kubernetes {
namespace {

bool may_be(const pod_record& pod, const arriving_pod& who) {
  return (who.uid.empty() || pod.uid == who.uid) && (pod.address.empty() || pod.address == who.address);
}

} // namespace

void pod_admission::on_news(const pod_news& news) {
  if (const auto* all = std::get_if<pod_listing>(&news)) return list(*all);
  if (const auto* gone = std::get_if<pod_gone>(&news)) {
    pods_.erase(gone->uid);
    made_.erase(gone->uid);
    return;
  }
  const auto& pod = std::get<pod_record>(news);
  pods_.put(pod);
  made_.erase(pod.uid);
}

/// What was made since the list had begun may be missing in it.
void pod_admission::list(const pod_listing& all) {
  known_pods now;
  for (const auto& pod : all.pods) now.put(pod);
  std::erase_if(made_, [&](const auto& one) { return now.contains(one.first) || one.second < all.began; });
  for (const auto& [uid, at] : made_)
    if (const auto* pod = pods_.find(uid)) now.put(*pod);
  pods_ = std::move(now);
  is_listed_ = true;
}

void pod_admission::on_created(const pod_record& made, time_point now) {
  if (pods_.contains(made.uid)) return; // the watch was faster
  pods_.put(made);
  made_[made.uid] = now;
}

std::string pod_admission::why_not(const arriving_pod& who) const {
  if (!is_listed_) return may_trust_ ? "" : "which pods the job has is not known yet";
  std::string why;
  for (const auto* pod : pods_.of(who.slot))
    if (may_be(*pod, who)) {
      why = why_to_go(*pod);
      if (why.empty()) return why;
    }
  if (!why.empty()) return why;
  return who.uid.empty() ? fmt::format("Kubernetes tells of no pod of it with the address {}", who.address)
                         : fmt::format("Kubernetes tells of no pod of it with uid {} and address {}", who.uid,
                                       who.address);
}

std::string pod_admission::why_to_go(const pod_record& pod) const {
  if (!is_alive(pod) && !is_planted(bug_, planted_bug::let_in_going))
    return fmt::format("pod {} is to end, and another one takes its place", pod.name);
  for (const auto* other : pods_.of(pod.slot))
    if (is_alive(*other) && other->owner == pod.owner && other->incarnation > pod.incarnation &&
        !is_planted(bug_, planted_bug::let_in_older))
      return fmt::format("pod {} was given up, and {} was made in its place", pod.name, other->name);
  return "";
}

} // namespace dlrun::kubernetes
