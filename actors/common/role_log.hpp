/// One log file a role: time, level, role, incarnation, stable event id, text.
#pragma once

#include "actors/protocol/roles.hpp"

#include <filesystem>
#include <memory>
#include <spdlog/logger.h>

namespace dlrun::common {

/// `<run_dir>/logs/<role>-<index>.log`; a restarted role appends to the file of the one before. Lines are
/// flushed at once: the last ones before a crash are the ones that count. @throws spdlog::spdlog_ex when the
/// file cannot be opened.
std::shared_ptr<spdlog::logger> make_role_log(const std::filesystem::path& run_dir,
                                              const protocol::role_name& role,
                                              dlrun::incarnation incarnation);

/// Path of that file.
std::filesystem::path role_log_path(const std::filesystem::path& run_dir, const protocol::role_name& role);

} // namespace dlrun::common
