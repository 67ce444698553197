/// known_pods: the pods of hosts as the API server tells them.
#pragma once

#include "kubernetes/pod_record.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// Pure: pods by uid, and those of each slot. A look at a slot costs as much as it has pods,
/// however many others there are.
class known_pods {
public:
  known_pods() = default;
  ~known_pods() = default;
  known_pods(known_pods&&) = default;
  known_pods& operator=(known_pods&&) = default;
  known_pods(const known_pods&) = delete; // it would point to the pods of the other
  known_pods& operator=(const known_pods&) = delete;

  const std::map<std::string, pod_record>& all() const { return pods_; }
  bool contains(const std::string& uid) const { return pods_.contains(uid); }
  /// Null: it is not there. As the next, until the next change.
  const pod_record* find(const std::string& uid) const;
  /// In the order of their uids.
  const std::vector<const pod_record*>& of(pod_slot slot) const;

  /// In place of what was there with its uid.
  void put(const pod_record& pod);
  void erase(const std::string& uid);

private:
  std::map<std::string, pod_record> pods_;
  std::map<pod_slot, std::vector<const pod_record*>> slots_; ///< elements of pods_
};

} // namespace dlrun::kubernetes
