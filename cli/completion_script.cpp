#include "cli/completion_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace dlrun::cli {
namespace {

struct option_view {
  std::string name; ///< without the dashes
  std::string description;
  bool takes_value = false;
};
struct verb_view {
  std::string name;
  std::string description;
  std::vector<option_view> options;
};

std::vector<verb_view> verbs_of(const CLI::App& app) {
  std::vector<verb_view> verbs;
  for (const auto* verb :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    verb_view view{verb->get_name(), verb->get_description(), {}};
    for (const auto* option : verb->get_options())
      for (const auto& name : option->get_lnames())
        view.options.push_back({name, option->get_description(), option->get_items_expected_max() > 0});
    verbs.push_back(std::move(view));
  }
  return verbs;
}

std::string for_bash(const std::vector<verb_view>& verbs) {
  std::string names, cases;
  for (const auto& verb : verbs) {
    names += verb.name + ' ';
    std::string options;
    for (const auto& option : verb.options) options += fmt::format("--{} ", option.name);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, options);
  }
  return fmt::format("_dlrun() {{\n"
                     "  local current=${{COMP_WORDS[COMP_CWORD]}} words=\"{}\"\n"
                     "  COMPREPLY=()\n"
                     "  if ((COMP_CWORD > 1)); then case ${{COMP_WORDS[1]}} in\n"
                     "{}"
                     "  esac; fi\n"
                     "  if ((COMP_CWORD == 1)) || [[ $current == -* ]]; then\n"
                     "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                     "  fi\n"
                     "}}\n"
                     "complete -o bashdefault -o default -F _dlrun dlrun\n",
                     names, cases);
}

/// In single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("\\'") : std::string(1, c);
  return out + "'";
}

std::string for_fish(const std::vector<verb_view>& verbs) {
  std::string script;
  for (const auto& verb : verbs) {
    script += fmt::format("complete -c dlrun -f -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                          quoted(verb.description));
    for (const auto& option : verb.options)
      script +=
          fmt::format("complete -c dlrun -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", verb.name,
                      option.name, option.takes_value ? " -r" : "", quoted(option.description));
  }
  return script;
}

} // namespace

result<std::string> completion_script(const CLI::App& app, const std::string& shell) {
  const auto verbs = verbs_of(app);
  if (shell == "bash") return for_bash(verbs);
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + for_bash(verbs);
  if (shell == "fish") return for_fish(verbs);
  return fail(error_code::bad_usage,
              fmt::format("there is no completion for '{}'; for bash, zsh and fish there is", shell));
}

} // namespace dlrun::cli
