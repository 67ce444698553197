/// What whoever lets hosts in knows of their pods, and whether it lets one in all the same.
#pragma once

#include "base/http_client.hpp"
#include "kubernetes/pod_admission.hpp"

#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace dlrun::kubernetes {

/// Hears what the control pod hears: news, and answers to what it asked for.
class join_witness {
public:
  /// Who is watched: whether it lets that pod in.
  std::function<bool(const arriving_pod&)> may_join = [](const auto&) { return true; };

  /// Somebody else listens from now on, who knows nothing.
  void forget() { known_ = known_pods{}; }
  void on_news(const pod_news& what) {
    if (const auto* gone = std::get_if<pod_gone>(&what)) return known_.erase(gone->uid);
    if (const auto* pod = std::get_if<pod_record>(&what)) return known_.put(*pod);
    forget();
    for (const auto& pod : std::get<pod_listing>(what).pods) known_.put(pod);
  }
  void on_made(const base::http_answer& answered) {
    const auto made = answered.status == 201 ? read_pod(nlohmann::json::parse(answered.body)) : std::nullopt;
    if (made && !known_.contains(made->uid)) known_.put(*made);
  }
  /// The host of that pod was let in.
  void on_join(const pod_record& pod) {
    const auto* const heard = known_.find(pod.uid);
    if (heard != nullptr && heard->is_going) note(fmt::format("{} is to end, and was let in", pod.name));
    for (const auto* other : known_.of(pod.slot))
      if (other->incarnation > pod.incarnation && is_alive(*other))
        note(fmt::format("{} was let in, and not {}", pod.name, other->name));
  }
  /// "" when nothing was.
  const std::string& wrong() const { return wrong_; }

private:
  void note(std::string wrong) {
    if (wrong_.empty()) wrong_ = std::move(wrong);
  }

  known_pods known_;
  std::string wrong_;
};

} // namespace dlrun::kubernetes
