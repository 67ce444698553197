/// silent_pods: pods that run, and of whose hosts the job has heard nothing.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/host_sights.hpp"
#include "kubernetes/pod_record.hpp"

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::kubernetes {

struct silence_rules {
  /// A host joins within a second of its start where the network lets it.
  std::chrono::milliseconds patience{30'000};
  std::string root{}; ///< what a host has to reach, for people: control pod, address and port
};

/// Pure. Kubernetes says of a pod that it runs, and not what it reaches: a NetworkPolicy or a
/// network plugin may keep its host from the root for ever. A host that the job has let in from
/// there is none of these, whatever has become of it, nor is one that it turned away just now, nor
/// one that waits until the pod before it has left.
class silent_pods {
public:
  explicit silent_pods(silence_rules rules = {})
      : rules_{std::move(rules)} {}

  /// @param pods by uid, as the server tells them now  @param hosts also before the job has begun
  /// @returns what people are to be told, once for each pod
  std::vector<std::string> look(const std::map<std::string, pod_record>& pods, const host_sights& hosts,
                                time_point now);
  /// Set by look(), before people are told: are they there at all? At most once in a quarter of the
  /// patience, and once for each pod.
  bool is_in_doubt() const { return is_in_doubt_; }
  /// Which pods are silent, for people.
  const std::vector<std::string>& told() const { return told_; }

private:
  struct silence {
    time_point since{};
    bool is_doubted = false, is_told = false;
  };
  std::vector<std::string> text_of(const std::vector<const pod_record*>& pods) const;

  silence_rules rules_;
  std::map<std::string, silence> silences_; ///< by uid
  std::vector<std::string> told_;
  bool is_in_doubt_ = false;
};

} // namespace dlrun::kubernetes
