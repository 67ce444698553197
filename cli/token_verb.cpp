#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/secret_output.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace dlrun::cli {
namespace {

constexpr std::uint64_t token_lifetime_default_s = 3600;
constexpr std::uint64_t token_lifetime_max_s = 7 * 24 * 3600;

struct token_options {
  std::string run_dir;
  std::uint64_t valid_s = token_lifetime_default_s;
  std::string output;
};

int token(const token_options& options) {
  std::optional<secret_file> file; // before there is a token, which nobody would have without it
  if (!options.output.empty()) {
    auto made = secret_file::create(options.output, "the token");
    if (!made) return complain(made.error());
    file.emplace(*std::move(made));
  }
  const auto answer = request_of_root(options.run_dir, fmt::format("token {}", options.valid_s));
  if (!answer) return complain(answer.error());
  if (answer->contains("error")) return complain_of_answer(*answer, "");
  if (!answer->contains("token"))
    return complain(error{error_code::protocol, "the root of the run gives no token"});
  const auto line = answer->value("token", "") + "\n";
  if (!file)
    say(stdout, "{}", line);
  else if (const auto written = file->write(line); !written)
    return complain(written.error());
  say(stderr, "good for one host, once, for {} s; there: dlrun agent --join {} --token-file FILE\n",
      options.valid_s, answer->value("address", "?"));
  return 0;
}

} // namespace

void add_token(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<token_options>();
  auto* command = app.add_subcommand("token", "Make a token by which one host may join a running job, once");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command
      ->add_option("--valid-s", options->valid_s,
                   "Seconds for which it can be used: up to a week (default: 3600)")
      ->check(whole_number(1, token_lifetime_max_s));
  command->add_option("--output", options->output,
                      "Write it to this new file, which nobody else may read (default: stdout)");
  command->footer(
      "Examples:\n"
      "  dlrun token runs/job --output token\n"
      "  dlrun token runs/job | ssh beta dlrun agent --join 10.0.0.1:7700 --token-file -\n"
      "Whoever has the token joins the job: it is kept out of arguments and environment. The job's "
      "list of hosts says\nwhere hosts join ('join:', docs/hosts.md).");
  command->callback([options, &chosen] { chosen = [options] { return token(*options); }; });
}

} // namespace dlrun::cli
