#include "kubernetes/refused_nodes.hpp"

#include "kubernetes/json_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

constexpr auto name_field = "metadata.name"; // of a node
constexpr auto required = "requiredDuringSchedulingIgnoredDuringExecution";

/// Of the terms of a pod's node affinity, any one of which has to hold.
const json& terms_of(const json& pod) {
  const auto& affinity = member(member(member(pod, "spec"), "affinity"), "nodeAffinity");
  return member(member(affinity, required), "nodeSelectorTerms");
}

bool is_about_names(const json& expression) {
  return text_in(expression, "key") == name_field && text_in(expression, "operator") == "NotIn";
}

} // namespace

void refused_nodes::see(const pod_record& pod) {
  if (is_planted(bug_, planted_bug::forget_nodes)) return;
  nodes_.insert(pod.keeps_off.begin(), pod.keeps_off.end());
  if (pod.has_other_bits && !pod.node.empty()) nodes_.insert(pod.node);
}

std::string refused_nodes::told() const {
  if (nodes_.empty()) return "";
  constexpr std::size_t named_max = 8;
  std::vector<std::string> named{nodes_.begin(), nodes_.end()};
  const auto more = named.size() > named_max ? named.size() - named_max : 0;
  named.resize(named.size() - more);
  return fmt::format(
      "no pod of a host is made for {} {}{}, which would compute other bits than the job began "
      "with: choose nodes of one processor model with --node-selector",
      nodes_.size() == 1 ? "node" : "nodes", fmt::join(named, ", "),
      more == 0 ? "" : fmt::format(" and {} more", more));
}

void keep_off(const std::set<std::string>& nodes, json& pod) {
  if (nodes.empty()) return;
  auto& terms = pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) terms = json::array({json::object()});
  // A node has one name, and a field of it takes one value an expression.
  for (auto& term : terms)
    for (const auto& node : nodes)
      term["matchFields"].push_back(
          {{"key", name_field}, {"operator", "NotIn"}, {"values", json::array({node})}});
}

std::vector<std::string> kept_off(const json& pod) {
  std::vector<std::string> all;
  for (const auto& term : terms_of(pod))
    for (const auto& expression : member(term, "matchFields"))
      if (is_about_names(expression))
        for (const auto& value : member(expression, "values"))
          if (value.is_string()) all.push_back(value.get<std::string>());
  return all;
}

} // namespace dlrun::kubernetes
