#include "kubernetes/pod_refusals.hpp"

#include <fmt/format.h>

namespace dlrun::kubernetes {

bool pod_refusals::on_refused(pod_question what, const api_refusal& why, time_point now) {
  auto [found, is_first] = troubles_.try_emplace(what, trouble{why, now, now});
  auto& one = found->second;
  const bool is_same = one.what.kind == why.kind && one.what.missing_right == why.missing_right;
  const bool is_news = is_first || !is_same || (one.is_over && now - one.last >= rules_.told_again);
  if (!is_same || one.is_over) one.since = now;
  one.what = why;
  one.last = now;
  one.is_over = false;
  return is_news;
}

void pod_refusals::on_done(pod_question what) {
  if (const auto found = troubles_.find(what); found != troubles_.end()) found->second.is_over = true;
}

std::optional<pods_end> pod_refusals::end(bool has_begun) const {
  for (const auto& [what, one] : troubles_)
    if (one.what.kind == refusal_kind::namespace_ends)
      return pods_end{1, fmt::format("the namespace of its pods is being deleted: {}", one.what.message)};
  if (has_begun) return std::nullopt;
  for (const auto& [what, one] : troubles_)
    if (ends_it(what, one))
      return pods_end{2, fmt::format("the job cannot begin without its pods: {}", one.what.message)};
  return std::nullopt;
}

bool pod_refusals::ends_it(pod_question what, const trouble& one) const {
  const bool is_needed =
      what != pod_question::removed && what != pod_question::guarded && what != pod_question::led;
  return is_needed && !one.is_over && !one.what.missing_right.empty() &&
         one.last - one.since >= rules_.right_patience;
}

std::vector<std::string> pod_refusals::told() const {
  std::vector<std::string> all;
  for (const auto& [what, one] : troubles_)
    if (!one.is_over) all.push_back(one.what.message);
  return all;
}

} // namespace dlrun::kubernetes
