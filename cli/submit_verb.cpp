#include "cli/complain.hpp"
#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/pods_options.hpp"
#include "cli/verbs.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::cli {
namespace {

/// Nobody's objects are written over.
result<void> check_free(const kubectl& cluster, const pods_target& of, const pods_wish& pods) {
  const auto told = cluster.ask(words_for_objects(of), "cannot look whether the job is there already");
  if (!told) return tl::unexpected(told.error());
  auto there = own_objects(of, *told);
  if (!pods.secret.empty()) std::erase(there, secret_of(of)); // it makes none
  if (there.empty()) return {};
  return fail(error_code::bad_usage,
              fmt::format("there is {} already: 'dlrun delete {}' removes a job, and --name gives this one "
                          "another name",
                          there.front(), of.text()));
}

result<void> apply(const kubectl& cluster, const pods_target& of, const std::string& manifests,
                   bool is_trial) {
  const auto answer = cluster.run(words_for_apply(of, is_trial), manifests);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code == 0) return {};
  const auto said = in_one_line(answer->complaint);
  if (is_trial)
    return fail(error_code::bad_usage,
                fmt::format("Kubernetes refuses the job, and nothing of it is there: {}", said));
  return fail(error_code::system,
              fmt::format("the job could not be submitted as a whole: {}; 'dlrun delete {}' "
                          "removes what of it is there",
                          said, of.text()));
}

result<void> submit(pods_options& options) {
  if (auto fine = settle(options); !fine) return fine;
  const auto& pods = options.pods;
  const pods_target of{pods.name_space, pods.name};
  const auto cluster = find_cluster();
  if (!cluster) return tl::unexpected(cluster.error());
  if (auto free = check_free(*cluster, of, pods); !free) return free;
  const auto manifests = manifests_of(pods);
  for (const bool is_trial : {true, false})
    if (auto done = apply(*cluster, of, manifests, is_trial); !done) return done;
  say(stdout, "submitted {}\n", of.text());
  return {};
}

} // namespace

void add_submit(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<pods_options>();
  auto* command = app.add_subcommand("submit", "Run a job on pods of Kubernetes, through kubectl");
  add_pods_options(*command, *options);
  command->footer("Example:\n"
                  "  dlrun submit job.yaml --image registry.example.com/dlrun:0.2.0 --hosts 3 --cpus 4 \\\n"
                  "    --namespace team-a --data-claim data --run-claim runs\n"
                  "  dlrun status k8s://team-a/fashion-mnist-cnn\n"
                  "kubectl is to be on PATH, and its context is used (docs/kubernetes.md).");
  command->callback([options, &chosen] {
    chosen = [options] {
      const auto done = submit(*options);
      return done ? 0 : complain(done.error());
    };
  });
}

} // namespace dlrun::cli
