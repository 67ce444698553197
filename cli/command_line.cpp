#include "cli/say.hpp"
#include "cli/verbs.hpp"

#include "job/exit_code.hpp"

#include <dlrun/training.hpp>
#include <exception>

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
