#include "actors/common/fingerprint.hpp"
#include "cli/say.hpp"
#include "cli/verbs.hpp"
#include "engine/cpu_level.hpp"
#include "engine/fingerprint.hpp"

#include <caf/config.hpp>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

std::string caf_version() {
  return fmt::format("{}.{}.{}", CAF_VERSION / 10000, CAF_VERSION / 100 % 100, CAF_VERSION % 100);
}

std::string version_text() {
  return fmt::format("dlrun {}\nbuild {}\nCAF {}\noneDNN {} ({})\n{}", common::dlrun_version(),
                     common::dlrun_build(), caf_version(), engine::onednn_version(),
                     engine::instruction_set(), engine::compiler_version());
}

int version(bool json) {
  if (json)
    say(stdout, "{}\n",
        nlohmann::ordered_json{{"dlrun", common::dlrun_version()},
                               {"build", common::dlrun_build()},
                               {"caf", caf_version()},
                               {"onednn", engine::onednn_version()},
                               {"isa", engine::instruction_set()},
                               {"compiler", engine::compiler_version()}}
            .dump());
  else
    say(stdout, "{}\n", version_text());
  return 0;
}

} // namespace

void add_version(CLI::App& app, verb& chosen) {
  app.set_version_flag("--version", version_text, "Print what 'dlrun version' does");
  auto* command = app.add_subcommand("version", "Print the versions of dlrun and of what decides its bits");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One line of JSON");
  command->callback([json, &chosen] { chosen = [json] { return version(*json); }; });
}

} // namespace dlrun::cli
