#include "cli/node_choice.hpp"

#include "cli/kubernetes_objects.hpp"
#include "cli/option_refusal.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

constexpr std::size_t label_bytes_max = 63;
constexpr std::array<std::string_view, 3> effects{"NoSchedule", "PreferNoSchedule", "NoExecute"};
/// Taints of which dlrun itself says how long its pods bear them.
constexpr std::array<std::string_view, 2> own_taints{"node.kubernetes.io/not-ready",
                                                     "node.kubernetes.io/unreachable"};

bool is_label_part(std::string_view text) {
  const auto is_end = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !text.empty() && text.size() <= label_bytes_max && is_end(text.front()) && is_end(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_end(c) || c == '-' || c == '_' || c == '.'; });
}

/// Of labels and taints: with a domain before it, or without.
bool is_key(const std::string& text) {
  const auto slash = text.find('/');
  return slash == text.npos ? is_label_part(text)
                            : is_dns_name(text.substr(0, slash)) && is_label_part(text.substr(slash + 1));
}

bool is_value(const std::string& text) { return text.empty() || is_label_part(text); }

result<node_label> read_label(std::string_view option, const std::string& given) {
  const auto sign = given.find('=');
  node_label label{given.substr(0, sign), sign == given.npos ? "" : given.substr(sign + 1)};
  if (sign != given.npos && is_key(label.first) && is_value(label.second)) return label;
  return refuse_option(
      option, given,
      "expected KEY=VALUE of a label of nodes, as in node.kubernetes.io/instance-type=c7i.4xlarge");
}

result<toleration> read_toleration(const std::string& given) {
  constexpr auto option = "--toleration";
  const auto colon = given.rfind(':');
  const auto taint = given.substr(0, colon);
  const auto sign = taint.find('=');
  toleration read{.key = taint.substr(0, sign), .effect = colon == given.npos ? "" : given.substr(colon + 1)};
  if (sign != taint.npos) read.value = taint.substr(sign + 1);
  const bool is_known = std::ranges::find(effects, read.effect) != effects.end();
  if (!is_known || !is_key(read.key) || !is_value(read.value.value_or("")))
    return refuse_option(
        option, given,
        "expected KEY=VALUE:EFFECT or KEY:EFFECT of a taint of nodes, EFFECT one of NoSchedule, "
        "PreferNoSchedule and NoExecute, as in cloud.google.com/gke-spot=true:NoSchedule");
  if (std::ranges::find(own_taints, read.key) != own_taints.end())
    return refuse_option(
        option, given,
        "nodes have this taint when Kubernetes hears nothing of them, and dlrun says for how long its "
        "pods stay there: leave it out");
  return read;
}

/// One value each: a node has no other.
result<void> add_labels(std::string_view option, const std::vector<std::string>& given,
                        const node_choice& before, std::vector<node_label>& labels) {
  for (const auto& one : given) {
    auto label = read_label(option, one);
    if (!label) return tl::unexpected(label.error());
    const auto is_its_key = [&](const auto& other) { return other.first == label->first; };
    if (std::ranges::any_of(labels, is_its_key) || std::ranges::any_of(before.labels, is_its_key))
      return refuse_option(option, one, "this label was given before, and a node has one value of it");
    labels.push_back(std::move(*label));
  }
  return {};
}

nlohmann::ordered_json object_of(const toleration& one) {
  nlohmann::ordered_json made{{"key", one.key}, {"operator", one.value ? "Equal" : "Exists"}};
  if (one.value) made["value"] = *one.value;
  made["effect"] = one.effect;
  return made;
}

} // namespace

bool is_extended_resource(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == name.npos) return false;
  const std::string domain{name.substr(0, slash)};
  const bool is_of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
  return is_dns_name(domain) && !is_of_kubernetes && is_label_part(name.substr(slash + 1));
}

result<void> read_nodes(const node_options& given, node_choice& choice) {
  if (auto added = add_labels("--node-selector", given.labels, {}, choice.labels); !added) return added;
  if (auto added = add_labels("--hosts-node-selector", given.hosts_labels, choice, choice.hosts_labels);
      !added)
    return added;
  if (auto added = add_labels("--ps-node-selector", given.ps_labels, choice, choice.ps_labels); !added)
    return added;
  for (const auto& one : given.tolerations) {
    auto read = read_toleration(one);
    if (!read) return tl::unexpected(read.error());
    if (std::ranges::find(choice.tolerations, *read) != choice.tolerations.end())
      return refuse_option("--toleration", one, "this was given before");
    choice.tolerations.push_back(std::move(*read));
  }
  return {};
}

nlohmann::ordered_json toleration_of_gpus(const node_choice& choice) {
  return object_of({.key = choice.gpu_resource, .effect = "NoSchedule"});
}

nlohmann::ordered_json tolerations_of(const node_choice& choice, bool has_gpus) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& one : choice.tolerations) all.push_back(object_of(one));
  auto of_gpus = toleration_of_gpus(choice);
  if (has_gpus && std::ranges::find(all, of_gpus) == all.end()) all.push_back(std::move(of_gpus));
  return all;
}

} // namespace dlrun::cli
