#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/verbs.hpp"

namespace dlrun::cli {

void add_stop(CLI::App& app, verb& chosen) {
  auto run_dir = std::make_shared<std::string>();
  auto* command = app.add_subcommand("stop", "End a running job in order: workers, PS shards, coordinator");
  command->add_option("DIR", *run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->callback([run_dir, &chosen] {
    chosen = [run_dir] {
      const auto answer = ask_root(*run_dir, "stop");
      if (!answer) return complain(answer.error());
      say(stdout, "{}\n", *answer);
      return 0;
    };
  });
}

} // namespace dlrun::cli
