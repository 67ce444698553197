/// refused_nodes: nodes on which no pod of the job can compute the bits of the others.
#pragma once

#include "kubernetes/planted_bug.hpp"
#include "kubernetes/pod_record.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// Pure. Remembers where containers ended since their node would compute other bits: a pod there
/// can only fail again, and later pods of the job are not to run there. It forgets nothing while it
/// lives. A new control pod learns what the pods that are there tell: of which nodes they keep off,
/// and how their containers ended.
class refused_nodes {
public:
  explicit refused_nodes(planted_bug bug = planted_bug::none)
      : bug_{bug} {}

  void see(const pod_record& pod);
  const std::set<std::string>& nodes() const { return nodes_; }
  bool contains(const std::string& node) const { return nodes_.contains(node); }
  /// For people; "": there is none.
  std::string told() const;

private:
  planted_bug bug_;
  std::set<std::string> nodes_;
};

/// Has a pod keep off these nodes, whatever else its node affinity says.
/// @param pod with a "spec"
void keep_off(const std::set<std::string>& nodes, nlohmann::json& pod);
/// What keep_off() wrote.
std::vector<std::string> kept_off(const nlohmann::json& pod);

} // namespace dlrun::kubernetes
