/// Looking at a run from outside.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>

namespace dlrun::cli {

/// Calls `show_new` again and again until the run is over and it was called once more after that;
/// at once when the run is over already. @returns role_lost when the root of the run died.
result<void> follow_run(const std::filesystem::path& run_dir, const std::function<void()>& show_new);

} // namespace dlrun::cli
