#include "cli/complain.hpp"
#include "cli/pods_verb.hpp"
#include "cli/standard_streams.hpp"
#include "cli/verbs.hpp"

#include "base/nearest.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <dlrun/training.hpp>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

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

/// An option that is given empty is one whose variable was not set, and is not left out.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty{
      [](const std::string& text) -> std::string { return text.empty() ? "its value is empty" : ""; }, "",
      "not empty"};
  for (auto* command : app.get_subcommands([](CLI::App*) { return true; }))
    for (auto* option :
         command->get_options([](CLI::Option* one) { return one->get_items_expected_max() > 0; }))
      option->check(not_empty);
}

/// The verb of the command line. @returns its exit code.
int run_verb(CLI::App& app, int argc, char** argv) {
  verb chosen;
  for (const auto& add : {add_init,    add_train,  add_resume, add_attach,     add_validate, add_status,
                          add_scale,   add_drain,  add_token,  add_stop,       add_export,   add_evaluate,
                          add_predict, add_logs,   add_events, add_explain,    add_doctor,   add_manifests,
                          add_submit,  add_delete, add_agent,  add_completion, add_version})
    add(app, chosen);
  app.footer( // only now: a verb that has none would inherit it
      "Examples:\n"
      "  dlrun init mlp && dlrun train job.yaml\n"
      "  dlrun train examples/fashion_mnist/cnn.yaml\n"
      "  dlrun train job.yaml --set train.epochs=3 --set cluster.workers=4\n"
      "  dlrun status runs/fashion-mnist-cnn --json\n"
      "'dlrun VERB --help' says more.");
  refuse_empty_values(app);
  try {
    if (const auto wrong = unknown_verb(app, argc, argv)) return complain({error_code::bad_usage, *wrong});
    app.parse(argc, argv);
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (const auto code = run_on_pods(words)) return *code;
    return chosen();
  } catch (const CLI::ParseError& error) {
    std::ostringstream told, complaint;
    const int code = app.exit(error, told, complaint);
    put_text(stdout, told.str());
    put_text(stderr, complaint.str(), log_level::error);
    return code == 0 ? 0 : static_cast<int>(job::exit_code::bad_input);
  } catch (const std::exception& error) {
    complain(error.what() + tell_gone_folder());
    return static_cast<int>(job::exit_code::job_failed);
  }
}

/// Nothing succeeds whose output nobody can have.
int with_output_written(int code) {
  const auto written = flush_output();
  return written || code != 0 ? code : complain(written.error());
}

} // namespace
} // namespace dlrun::cli

int dlrun::run_command_line(int argc, char** argv) {
  if (const auto role = run_role(argc, argv)) return *role;
  cli::occupy_closed_streams();
  CLI::App app{"dlrun trains deep-learning models on machines that fail: each sample counts exactly once, "
               "and the result is "
               "bit-identical to that of an undisturbed run.",
               "dlrun"};
  app.require_subcommand(1);
  return cli::with_output_written(cli::run_verb(app, argc, argv));
}
