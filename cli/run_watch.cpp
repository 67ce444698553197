#include "cli/run_watch.hpp"

#include "actors/agent/control_socket.hpp"
#include "job/run_layout.hpp"

#include <thread>

namespace dlrun::cli {

bool pause_for_look() {
  std::this_thread::sleep_for(look_period);
  return true;
}

result<void> follow_run(const std::filesystem::path& run_dir,
                        const std::function<void(const std::string& status)>& show_new,
                        const look_pause& pause) {
  do {
    std::error_code ignored;
    const bool running = std::filesystem::exists(run_dir / run_layout::agent, ignored);
    const auto answer = running ? agent::ask_root(run_dir, "status") : result<std::string>{};
    show_new(answer.value_or(""));
    if (!running) return {};
    // A root that is busy for a moment is neither dead nor elsewhere; one that ends in order takes
    // its file away first.
    if (!answer && answer.error().code != error_code::timed_out &&
        std::filesystem::exists(run_dir / run_layout::agent, ignored))
      return tl::unexpected(answer.error());
  } while (pause());
  return {};
}

} // namespace dlrun::cli
