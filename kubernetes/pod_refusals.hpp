/// pod_refusals: what follows for a job when the API server refuses what is asked for its pods.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/pods_end.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

enum class pod_question : std::uint8_t {
  wanted,  ///< how many there are to be
  told,    ///< which there are: list and watch
  made,    ///< to make one
  removed, ///< to delete one
  guarded, ///< how many have to stay
  led,     ///< to say which control pod leads
};

struct refusal_rules {
  /// Rights may be given a little after the pods are there, and somebody may be about to mend them.
  std::chrono::milliseconds right_patience{30'000};
  /// What is refused anew after so long is told anew.
  std::chrono::milliseconds told_again{60'000};
};

/// Pure. A job that has begun trains on with the pods that it has, whatever is refused, and asks
/// again and again; unless its namespace is being deleted. One that has not begun waits for pods.
/// It ends where a right is missing that it needs for that, and was asked for again after 30 s.
class pod_refusals {
public:
  explicit pod_refusals(refusal_rules rules = {})
      : rules_{rules} {}

  /// @returns whether people are to be told of it: it is none of a kind that they know of
  bool on_refused(pod_question what, const api_refusal& why, time_point now);
  /// It was not refused.
  void on_done(pod_question what);

  /// Nothing: it goes on. @param has_begun whether the job has
  std::optional<pods_end> end(bool has_begun) const;
  /// What is refused now, for people.
  std::vector<std::string> told() const;

private:
  struct trouble {
    api_refusal what;
    time_point since{}, last{};
    bool is_over = false; ///< and may come again
  };
  bool ends_it(pod_question what, const trouble& one) const;

  refusal_rules rules_;
  std::map<pod_question, trouble> troubles_;
};

} // namespace dlrun::kubernetes
