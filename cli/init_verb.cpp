#include "base/atomic_file.hpp"
#include "base/shell_word.hpp"
#include "cli/complain.hpp"
#include "cli/templates.hpp"
#include "cli/verbs.hpp"

#include <algorithm>
#include <filesystem>

namespace dlrun::cli {
namespace {

struct init_options {
  std::string name;
  std::string file = "job.yaml";
  bool list = false;
};

std::string list_of_templates() {
  std::string list;
  for (const auto& one : job_templates()) list += fmt::format("  {:<8} {}\n", one.name, one.description);
  return list;
}

result<const job_template*> find_template(const std::string& name) {
  const auto all = job_templates();
  const auto found = std::ranges::find(all, name, &job_template::name);
  if (found != all.end()) return &*found;
  return fail(error_code::bad_usage,
              fmt::format("{}; there are:\n{}",
                          name.empty() ? "name a template" : fmt::format("there is no template '{}'", name),
                          list_of_templates()));
}

/// What a template consists of, and where each file goes: the data beside the job. Refers to
/// `job_name`.
std::vector<template_file> files_of(const job_template& chosen, std::string_view job_name) {
  std::vector<template_file> files{{job_name, chosen.job}};
  files.insert(files.end(), chosen.data.begin(), chosen.data.end());
  return files;
}

/// All files or none.
result<void> write_files(const std::filesystem::path& folder, const std::vector<template_file>& files) {
  std::error_code ignored;
  for (const auto& file : files)
    if (std::filesystem::exists(folder / file.name, ignored))
      return fail(error_code::bad_usage,
                  fmt::format("'{}' exists: remove it, or name another file, as in 'dlrun "
                              "init mlp other/job.yaml'",
                              (folder / file.name).string()));
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    return fail(error_code::bad_usage, fmt::format("there is no folder '{}'", folder.string()));
  for (const auto& file : files)
    if (auto written = base::write_file_atomically(folder / file.name, file.text); !written) return written;
  return {};
}

int init(const init_options& options) {
  if (options.list) {
    say(stdout, "{}", list_of_templates());
    return 0;
  }
  const auto chosen = find_template(options.name);
  if (!chosen) return complain(chosen.error());
  const std::filesystem::path job{options.file};
  const auto job_name = job.filename().string();
  const auto files = files_of(**chosen, job_name);
  if (auto written = write_files(job.parent_path(), files); !written) return complain(written.error());
  for (const auto& file : files) say(stdout, "wrote {}\n", (job.parent_path() / file.name).string());
  say(stdout, "edit it (docs/spec.md says what may stand there), then: dlrun train {}\n",
      base::shell_word(job.string()));
  return 0;
}

} // namespace

void add_init(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<init_options>();
  auto* command = app.add_subcommand("init", "Write a job file to start from");
  command->add_option("TEMPLATE", options->name, "Which one; --list shows them");
  command->add_option("FILE", options->file, "Where to (default: job.yaml); it must not exist");
  command->add_flag("--list", options->list, "Show the templates");
  command->footer("Templates:\n" + list_of_templates());
  command->callback([options, &chosen] { chosen = [options] { return init(*options); }; });
}

} // namespace dlrun::cli
