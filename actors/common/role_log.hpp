/// One log file a role: time, level, role, incarnation, stable event id, text.
#pragma once

#include "actors/protocol/roles.hpp"

#include <filesystem>
#include <memory>
#include <spdlog/logger.h>
#include <string_view>

namespace dlrun::common {

struct job_facts;

/// `<run_dir>/logs/<role>-<index>.log`; a restarted role appends to the file of the one before.
/// Lines are flushed at once: the last ones before a crash are the ones that count. Of the form
/// that observability.log_format says (docs/observability.md). @throws spdlog::spdlog_ex when the
/// file cannot be opened.
std::shared_ptr<spdlog::logger> make_role_log(const job_facts& job, const protocol::role_name& role,
                                              dlrun::incarnation incarnation);

/// Path of that file.
std::filesystem::path role_log_path(const std::filesystem::path& run_dir, const protocol::role_name& role);

/// "lease: slots [0, 4)": the event is "lease". Only a word of small letters and dashes is one;
/// else it is empty, and all of it is text.
struct log_text {
  std::string_view event, text;
};
log_text split_event(std::string_view text);

} // namespace dlrun::common
