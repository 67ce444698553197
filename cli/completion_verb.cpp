#include "cli/complain.hpp"
#include "cli/completion_script.hpp"
#include "cli/verbs.hpp"

namespace dlrun::cli {

void add_completion(CLI::App& app, verb& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  command->footer("Examples:\n"
                  "  source <(dlrun completion bash)\n"
                  "  dlrun completion fish > ~/.config/fish/completions/dlrun.fish");
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app] {
      const auto script = completion_script(app, *shell);
      if (!script) return complain(script.error());
      say(stdout, "{}", *script);
      return 0;
    };
  });
}

} // namespace dlrun::cli
