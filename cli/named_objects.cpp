#include "cli/named_objects.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

namespace dlrun::cli {
namespace {

/// What shows those that are there.
std::string words_for_all(const pods_target& of, const named_objects& named) {
  const auto kind = named.kind.substr(0, named.kind.find('.'));
  const auto space = named.is_in_namespace && !of.name_space.empty()
                         ? fmt::format(" --namespace {}", of.name_space)
                         : std::string{};
  return fmt::format("kubectl get {}{}{}", kind, kind.ends_with('s') ? "es" : "s", space);
}

} // namespace

std::vector<named_objects> objects_named_by(const pods_wish& pods) {
  std::vector<named_objects> kinds{{.kind = "persistentvolumeclaim",
                                    .shown = "PersistentVolumeClaim",
                                    .all = {{"--data-claim", pods.data_claim},
                                            {"--run-claim", pods.run_claim},
                                            {"--archive-claim", pods.archive_claim},
                                            {"--model-claim", pods.model_claim}}},
                                   {.kind = "secret",
                                    .shown = "Secret",
                                    .all = {{"--secret", pods.secret},
                                            {"--journal-secret", pods.journal_secret},
                                            {"--metrics-secret", pods.metrics.secret}}},
                                   {.kind = "serviceaccount",
                                    .shown = "ServiceAccount",
                                    .all = {{"--service-account", pods.service_account}}},
                                   {.kind = "priorityclass.scheduling.k8s.io",
                                    .shown = "PriorityClass",
                                    .is_in_namespace = false,
                                    .all = {{"--priority-class", pods.priority_class},
                                            {"--preemptible-priority-class", pods.preemptible_class}}},
                                   {.kind = "localqueue.kueue.x-k8s.io",
                                    .shown = "LocalQueue of Kueue",
                                    .all = {{"--queue", pods.queue}}}};
  for (auto& kind : kinds) std::erase_if(kind.all, [](const named_object& one) { return one.name.empty(); });
  std::erase_if(kinds, [](const named_objects& kind) { return kind.all.empty(); });
  return kinds;
}

std::vector<std::string> words_for_named(const pods_target& of, const named_objects& named) {
  std::vector<std::string> names;
  std::ranges::transform(named.all, std::back_inserter(names), &named_object::name);
  return words_for_names(of, named.kind, names);
}

std::vector<named_object> not_told(const named_objects& named, const std::string& answer) {
  std::set<std::string> told; // whatever the server calls the kind
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) told.insert(line.substr(line.find('/') + 1));
  auto missing = named.all;
  std::erase_if(missing, [&](const named_object& one) { return told.contains(one.name); });
  return missing;
}

std::string tell_missing(const pods_target& of, const named_objects& named, const named_object& missing) {
  const auto where = named.is_in_namespace ? " in " + of.place() : std::string{};
  return fmt::format("{} '{}': there is no {} of that name{}: make it, or name one that is there ('{}'){}",
                     missing.option, missing.name, named.shown, where, words_for_all(of, named),
                     missing.option == "--secret" ? ", or leave the option out, and one is made" : "");
}

bool is_untold(std::string_view complaint) {
  const auto says = [&](std::string_view part) { return complaint.find(part) != complaint.npos; };
  return says("(Forbidden)") || says("the server doesn't have a resource type");
}

} // namespace dlrun::cli
