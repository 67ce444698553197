#include "actors/agent/drain_stage.hpp"
#include "base/shell_word.hpp"
#include "base/utf8.hpp"
#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/verbs.hpp"
#include "job/hosts_file.hpp"

#include <chrono>
#include <optional>

namespace dlrun::cli {
namespace {

constexpr auto look_again_after = std::chrono::milliseconds(100);
/// For as long a PS shard waits for a host that may come back: whoever needs another host is not
/// helped by that one any more.
constexpr auto host_patience = std::chrono::seconds(10);

struct drain_options {
  std::string run_dir;
  std::string host;
  bool wait = false;
  bool undo = false;
};

/// What the root says of that host.
nlohmann::json host_in(const nlohmann::json& status, const std::string& host) {
  for (const auto& one : status.value("hosts", nlohmann::json::array()))
    if (one.value("name", "") == host) return one;
  return nlohmann::json::object();
}

/// Until the host is drained, or cannot be.
int wait_until_drained(const drain_options& options) {
  auto could_go_on = std::chrono::steady_clock::now();
  std::string told;
  return watch_status(
      options.run_dir, look_again_after, [&](const nlohmann::json& status) -> std::optional<int> {
        const auto host = host_in(status, options.host);
        const auto state = host.value("state", "");
        if (state == "drained") {
          say(stdout, "host {} is drained: it may be switched off{}\n", options.host,
              host.value("without_copies", false) ? "; " + agent::no_copies_while_drained(options.host) : "");
          return 0;
        }
        if (state != "draining") return fail_wait(fmt::format("host {} is in use again", options.host));
        const auto waits_for = host.value("waits_for", "");
        if (waits_for != told && !waits_for.empty()) say(stderr, "still there: {}\n", waits_for);
        told = waits_for;
        const auto now = std::chrono::steady_clock::now();
        if (!host.value("needs_a_host", false)) could_go_on = now;
        if (now - could_go_on < host_patience) return std::nullopt;
        return fail_wait(fmt::format("host {} cannot be emptied: {}; it goes on when another "
                                     "host is there, and '--undo' ends it",
                                     options.host, waits_for));
      });
}

bool is_drained_already(const drain_options& options) {
  const auto status = request_of_root(options.run_dir, "status");
  const auto state = status ? host_in(*status, options.host).value("state", "") : "";
  return state == "draining" || state == "drained";
}

int drain(const drain_options& options) {
  if (!job::is_host_name(options.host))
    return complain(
        error{error_code::bad_usage,
              fmt::format("the name \"{}\" cannot be a host's: letters, digits, '.', '_' and '-', a letter "
                          "or digit first; 'dlrun status' names the hosts of the job",
                          base::printable(options.host))});
  const auto way_out = fmt::format("'dlrun resume {} --hosts FILE' goes on with the hosts of that list",
                                   base::shell_word(options.run_dir));
  if (const auto over = why_over(options.run_dir, way_out)) return complain(*over);
  const auto* word = options.undo ? "undrain" : "drain";
  const auto answer = request_of_root(options.run_dir, fmt::format("{} {}", word, options.host));
  if (!answer) return complain(answer.error());
  // By somebody else, maybe just now.
  const bool is_begun = answer->contains("error") && options.wait && is_drained_already(options);
  if (is_begun) return wait_until_drained(options);
  if (answer->contains("error")) return complain_of_answer(*answer, "");
  say(stdout, "{}\n", answer->value("text", ""));
  return options.wait ? wait_until_drained(options) : 0;
}

} // namespace

void add_drain(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<drain_options>();
  auto* command = app.add_subcommand(
      "drain", "Move everything of a running job off a host, so that it may be switched off");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_option("HOST", options->host, "Its name in the list of hosts, or as it joined")->required();
  auto* wait =
      command->add_flag("--wait", options->wait, "Wait until it is drained, and may be switched off");
  command->add_flag("--undo", options->undo, "Let it be used again")->excludes(wait);
  command->footer(
      "Workers hand back what they have and start elsewhere; PS shards go on from their copies on other "
      "hosts,\n"
      "which there are unless durability.replicas is 1; of two hosts, there are no copies while one is "
      "drained.\n"
      "No step is done again, no restart is used. 'dlrun status' shows how far it is; Ctrl-C of --wait "
      "leaves "
      "it\ngoing. The host of the root cannot be drained (docs/hosts.md).");
  command->callback([options, &chosen] { chosen = [options] { return drain(*options); }; });
}

} // namespace dlrun::cli
