/// A job as every process sees it, for tests that need one.
#pragma once

#include "actors/common/job_context.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::test {

/// 64 inputs, 20 classes, ten records in steps of four, four epochs: 12 steps; momentum, so there
/// is state; every step logged. `overrides` as for --set. Nothing is read from the disk.
std::shared_ptr<const common::job_context> small_job(const std::filesystem::path& run_dir,
                                                     const std::vector<std::string>& overrides = {},
                                                     std::vector<spec::TrainSpec> revisions = {});

} // namespace dlrun::test
