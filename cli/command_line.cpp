#include "cli/say.hpp"
#include "cli/verbs.hpp"

#include "base/nearest.hpp"
#include "base/utf8.hpp"
#include "job/exit_code.hpp"

#include <algorithm>
#include <dlrun/training.hpp>
#include <exception>
#include <optional>

namespace dlrun::cli {
namespace {

/// What to say of a verb that does not exist: CLI11 would only ask for one.
std::optional<std::string> unknown_verb(CLI::App& app, int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  if (wanted.empty() || wanted.front() == '-') return std::nullopt;
  std::vector<std::string> verbs;
  for (const CLI::App* known : app.get_subcommands([](CLI::App*) { return true; }))
    verbs.push_back(known->get_name());
  if (std::find(verbs.begin(), verbs.end(), wanted) != verbs.end()) return std::nullopt;
  return fmt::format("there is no verb '{}'; {}", base::printable(wanted), base::hint(wanted, verbs));
}

} // namespace
} // namespace dlrun::cli

int dlrun::run_command_line(int argc, char** argv) {
  if (const auto role = run_role(argc, argv)) return *role;
  CLI::App app{"dlrun trains deep-learning models on machines that fail: each sample counts exactly once, "
               "and the result is "
               "bit-identical to that of an undisturbed run.",
               "dlrun"};
  app.require_subcommand(1);
  app.footer("Examples:\n"
             "  dlrun init mlp && dlrun train job.yaml\n"
             "  dlrun train examples/fashion_mnist/cnn.yaml\n"
             "  dlrun train job.yaml --set train.epochs=3 --set cluster.workers=4\n"
             "  dlrun status runs/fashion-mnist-cnn --json\n"
             "'dlrun VERB --help' says more.");
  dlrun::cli::verb chosen;
  dlrun::cli::add_init(app, chosen);
  dlrun::cli::add_train(app, chosen);
  dlrun::cli::add_resume(app, chosen);
  dlrun::cli::add_validate(app, chosen);
  dlrun::cli::add_status(app, chosen);
  dlrun::cli::add_stop(app, chosen);
  dlrun::cli::add_export(app, chosen);
  dlrun::cli::add_evaluate(app, chosen);
  dlrun::cli::add_predict(app, chosen);
  dlrun::cli::add_logs(app, chosen);
  dlrun::cli::add_events(app, chosen);
  dlrun::cli::add_completion(app, chosen);
  dlrun::cli::add_version(app, chosen);
  if (const auto wrong = dlrun::cli::unknown_verb(app, argc, argv)) {
    dlrun::cli::say(stderr, "dlrun: {}\n", *wrong);
    return static_cast<int>(dlrun::job::exit_code::bad_input);
  }
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(dlrun::job::exit_code::bad_input);
  } catch (const std::exception& error) {
    dlrun::cli::say(stderr, "dlrun: {}\n", error.what());
    return static_cast<int>(dlrun::job::exit_code::job_failed);
  }
}
