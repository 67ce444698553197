/// Looking at a run from outside.
#pragma once

#include <chrono>
#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <string>

namespace dlrun::cli {

/// How long until the next look; how late a new line is shown. Each look costs a few system calls.
inline constexpr auto look_period = std::chrono::milliseconds(200);

/// Waits for `look_period`. @returns false when there shall be no more looks.
using look_pause = std::function<bool()>;
bool pause_for_look();

/// Calls `show_new` again and again until the run is over and it was called once more after that;
/// at once when the run is over already, and not while its root prepares it; or until `pause` says
/// so. `status`: what the root answers,
/// "" when it does not, which is said on stderr when it lasts. @returns role_lost when the root of
/// the run died, bad_usage when it is on another host.
result<void> follow_run(const std::filesystem::path& run_dir,
                        const std::function<void(const std::string& status)>& show_new,
                        const look_pause& pause = pause_for_look);

} // namespace dlrun::cli
