#include "actors/common/fingerprint.hpp"
#include "cli/verbs.hpp"

#include <caf/config.hpp>
#include <fmt/core.h>

namespace dlrun::cli {

void add_version(CLI::App& app, verb& chosen) {
  auto* command = app.add_subcommand("version", "Print the versions of dlrun and of what decides its bits");
  command->callback([&chosen] {
    chosen = [] {
      fmt::print("dlrun {}\nCAF {}.{}.{}\noneDNN {} ({})\n{}\n", common::dlrun_version(), CAF_VERSION / 10000,
                 CAF_VERSION / 100 % 100, CAF_VERSION % 100, common::onednn_version(),
                 common::instruction_set(), common::compiler_version());
      return 0;
    };
  });
}

} // namespace dlrun::cli
