#include "cli/run_watch.hpp"

#include "actors/agent/control_socket.hpp"

#include <chrono>
#include <thread>

namespace dlrun::cli {
namespace {

/// How late a new line is shown. Each look costs a few system calls.
constexpr auto look_period = std::chrono::milliseconds(200);

} // namespace

result<void> follow_run(const std::filesystem::path& run_dir, const std::function<void()>& show_new) {
  for (;;) {
    std::error_code ignored;
    const bool running = std::filesystem::exists(run_dir / agent::agent_file, ignored);
    const auto answer = running ? agent::ask_root(run_dir, "status") : result<std::string>{};
    show_new();
    if (!running) return {};
    // A root that is busy for a moment is not dead; one that ends in order takes its file away
    // first.
    if (!answer && answer.error().code == error_code::role_lost &&
        std::filesystem::exists(run_dir / agent::agent_file, ignored))
      return tl::unexpected(answer.error());
    std::this_thread::sleep_for(look_period);
  }
}

} // namespace dlrun::cli
