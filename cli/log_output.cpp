#include "cli/log_output.hpp"

#include "base/wall_time.hpp"
#include "cli/standard_streams.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> level_names{"info", "warning", "error"};
constexpr std::string_view newline = "\n";

/// As standard output is: that of the process.
std::atomic<job::log_format> chosen_format = job::log_format::text;

std::string_view without_newlines(std::string_view text) {
  while (text.ends_with(newline)) text.remove_suffix(newline.size());
  return text;
}

/// In one call, so that lines of threads do not mix; at once, so that no end takes it along.
void print_as_json(log_level level, std::string_view message) {
  put(stdout, json_log_line(level, message, ordered_json::object()));
  flush(stdout);
}

} // namespace

CLI::Option* add_log_format(CLI::App& command) {
  return command
      .add_option_function<std::string>(
          "--log-format",
          [](const std::string& name) {
            choose_log_format(name == "json" ? job::log_format::json : job::log_format::text);
          },
          "Print lines for people (text), or for a collector of logs one JSON object a line, errors too, on "
          "stdout (json; default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->trigger_on_parse();
}

job::log_format chosen_log_format() { return chosen_format; }
void choose_log_format(job::log_format chosen) { chosen_format = chosen; }

std::string json_log_line(log_level level, std::string_view message, const ordered_json& fields) {
  ordered_json line{{"time", base::wall_time()},
                    {"level", level_names.at(static_cast<std::size_t>(level))},
                    {"message", without_newlines(message)}};
  for (const auto& [name, value] : fields.items())
    if (!line.contains(name)) line[name] = value;
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

void put_text(std::FILE* to, const std::string& text, log_level level) {
  if (chosen_format == job::log_format::text) return put(to, text);
  if (const auto message = without_newlines(text); !message.empty()) print_as_json(level, message);
}

void tell(log_level level, std::string_view message) {
  if (chosen_format == job::log_format::json) return print_as_json(level, message);
  put(stderr, fmt::format("dlrun: {}{}\n", level == log_level::warning ? "warning: " : "", message));
}

} // namespace dlrun::cli
