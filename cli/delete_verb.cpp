#include "cli/complain.hpp"
#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/verbs.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <vector>

namespace dlrun::cli {
namespace {

/// What is marked as the job's own, and has the name that it gives.
result<std::vector<std::string>> find_own(const kubectl& cluster, const pods_target& of) {
  const auto what = fmt::format("cannot look for '{}'", of.job);
  const auto told = cluster.ask(words_for_own_objects(of), what);
  if (!told) return tl::unexpected(told.error());
  auto own = own_objects(of, *told);
  if (!serves_metrics(of, own)) return own;
  const auto kinds = cluster.ask(words_for_monitor_kind(), what);
  if (!kinds) return tl::unexpected(kinds.error());
  if (!knows_monitors(*kinds)) return own;
  const auto monitors = cluster.ask(words_for_own_monitors(of), what);
  if (!monitors) return tl::unexpected(monitors.error());
  std::ranges::copy(own_objects(of, *monitors), std::back_inserter(own));
  return own;
}

result<void> remove(const std::string& text) {
  const auto of = read_target(text);
  if (!of) return tl::unexpected(of.error());
  const auto cluster = find_cluster(server_minor_min);
  if (!cluster) return tl::unexpected(cluster.error());
  const auto own = find_own(*cluster, *of);
  if (!own) return tl::unexpected(own.error());
  const auto& objects = *own;
  if (objects.empty())
    return fail(error_code::bad_usage, fmt::format("nothing of a job '{}' is there: 'kubectl get jobs "
                                                   "--selector app.kubernetes.io/name=dlrun' shows those "
                                                   "that are",
                                                   of->text()));
  const auto done = cluster->ask(words_for_delete(*of, objects), fmt::format("cannot delete '{}'", of->job));
  if (!done) return tl::unexpected(done.error());
  for (const auto& one : objects) say(stdout, "deleted {}\n", one);
  return {};
}

} // namespace

void add_delete(CLI::App& app, verb& chosen) {
  auto target = std::make_shared<std::string>();
  auto* command = app.add_subcommand("delete", "Remove the objects of a job on pods, but no claim");
  command->add_option("JOB", *target, "k8s://NAMESPACE/JOB, or k8s://JOB")->required();
  command->footer("What is in the claims of data and run stays. A run without --run-claim is gone.");
  command->callback([target, &chosen] {
    chosen = [target] {
      const auto done = remove(*target);
      return done ? 0 : complain(done.error());
    };
  });
}

} // namespace dlrun::cli
