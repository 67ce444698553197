#include "cli/complain.hpp"
#include "cli/control_job.hpp"
#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/pods_options.hpp"
#include "cli/submit_checks.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>

namespace dlrun::cli {
namespace {

/// What was said before to be taken as a whole.
result<void> apply(const kubectl& cluster, const pods_target& of, const std::string& manifests) {
  const auto answer = cluster.run(words_for_apply(of, false), manifests);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code == 0) return {};
  return fail(error_code::system,
              fmt::format("the job could not be submitted as a whole: {}; 'dlrun delete {}' "
                          "removes what of it is there",
                          in_one_line(answer->complaint), of.text()));
}

result<void> submit(pods_options& options) {
  if (auto fine = settle(options); !fine) return fine;
  const auto& pods = options.pods;
  const pods_target of{pods.name_space, pods.name};
  const auto cluster = find_cluster(manifest::may_overlap(pods) ? server_minor_min : server_minor_min_alone);
  if (!cluster) return tl::unexpected(cluster.error());
  const auto manifests = manifests_of(pods);
  if (auto fine = check_submit(*cluster, of, pods, manifests); !fine) return fine;
  if (auto done = apply(*cluster, of, manifests); !done) return done;
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
