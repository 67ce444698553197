/// The report of a run that is over.
#pragma once

#include "actors/agent/run_board.hpp"
#include "actors/common/job_context.hpp"

#include <dlrun/report.hpp>
#include <filesystem>
#include <spdlog/logger.h>

namespace dlrun::runtime {

/// The one that the coordinator wrote to `path`; or, when it could not, one with what the journal
/// and the root know, which is written there. One that cannot be read stays, and the run has
/// failed. May block for the journal. `last`: what the root has heard.
dlrun::report final_report(const common::job_context& job, const protocol::job_ended& ended,
                           const agent::run_snapshot& last, const std::filesystem::path& path,
                           spdlog::logger& log);

} // namespace dlrun::runtime
