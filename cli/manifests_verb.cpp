#include "cli/complain.hpp"
#include "cli/line_output.hpp"
#include "cli/pods_options.hpp"
#include "cli/secret_output.hpp"
#include "cli/verbs.hpp"

namespace dlrun::cli {
namespace {

struct manifests_options {
  pods_options job;
  std::string output;
};

result<void> write(const std::string& text, const manifests_options& options) {
  if (!options.output.empty()) return write_secret(options.output, text, "the manifests");
  auto output = line_output::open("");
  if (!output) return tl::unexpected(output.error());
  if (auto written = output->write(text); !written) return written;
  return output->finish();
}

int manifests(manifests_options options) {
  if (auto fine = settle(options.job); !fine) return complain(fine.error());
  if (auto written = write(manifests_of(options.job.pods), options); !written)
    return complain(written.error());
  return 0;
}

} // namespace

void add_manifests(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<manifests_options>();
  auto* command = app.add_subcommand("manifests", "Write a job as objects of Kubernetes, for kubectl apply");
  add_pods_options(*command, options->job);
  command->add_option("--output", options->output,
                      "Write to this new file, which nobody else may read (default: stdout)");
  command->footer(
      "Example:\n"
      "  dlrun manifests job.yaml --image registry.example.com/dlrun:0.2.0 --hosts 3 --cpus 4 \\\n"
      "    --data-claim data --run-claim runs --output job.k8s.yaml\n"
      "  kubectl apply --server-side -f job.k8s.yaml\n"
      "What it writes is a secret, unless --secret names one: whoever has it joins the job\n"
      "(docs/kubernetes.md). Nothing is asked of a cluster.");
  command->callback([options, &chosen] { chosen = [options] { return manifests(*options); }; });
}

} // namespace dlrun::cli
