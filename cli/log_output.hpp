/// What a verb says while it runs: lines for people, or JSON objects for a collector of logs.
#pragma once

#include "job/choices.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace dlrun::cli {

enum class log_level : std::uint8_t { info, warning, error };

/// `--log-format text|json`: chosen for the whole process as soon as it is read, so that what is
/// wrong with another option is said in that format too.
CLI::Option* add_log_format(CLI::App& command);
/// Of what this process prints.
job::log_format chosen_log_format();
/// For add_log_format(), and for tests.
void choose_log_format(job::log_format chosen);

/// One line with its newline: an object of time (RFC 3339, UTC, milliseconds), level and message,
/// then `fields`. What is no UTF-8 is replaced, what is no number becomes null, and a field that
/// has the name of one of the first three is left out.
std::string json_log_line(log_level level, std::string_view message, const nlohmann::ordered_json& fields);

/// Prints a text, which has its newline, to `to`; as JSON, in one object, to stdout.
void put_text(std::FILE* to, const std::string& text, log_level level = log_level::info);
/// Prints "dlrun: MESSAGE" or "dlrun: warning: MESSAGE" to stderr; as JSON to stdout.
void tell(log_level level, std::string_view message);

} // namespace dlrun::cli
