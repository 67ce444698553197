#include "cli/run_watch.hpp"

#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "job/run_layout.hpp"
#include "runtime/answer_deadlines.hpp"
#include "runtime/run_folder.hpp"

#include <thread>

namespace dlrun::cli {
namespace {

constexpr std::chrono::milliseconds look_deadline{2000};

/// Says once, on stderr, that the root does not answer, and once that it does again.
class silent_root {
public:
  void hear(const result<std::string>& answer) {
    const bool is_silent = !answer && answer.error().code == error_code::timed_out;
    if (is_silent && ++looks_ == looks_until_told) note(answer.error().message + "; waiting for it");
    if (is_silent) return;
    if (looks_ >= looks_until_told) note("the root of the run answers again");
    looks_ = 0;
  }

private:
  /// In a row: as long as a verb would wait.
  static constexpr auto looks_until_told = runtime::root_answer_deadline / look_deadline;
  int looks_ = 0;
};

} // namespace

bool pause_for_look() {
  std::this_thread::sleep_for(look_period);
  return true;
}

result<void> follow_run(const std::filesystem::path& run_dir,
                        const std::function<void(const std::string& status)>& show_new,
                        const look_pause& pause) {
  silent_root silence;
  do {
    std::error_code ignored;
    // Looked at first: what is written until then is shown.
    const bool is_over =
        std::filesystem::exists(run_dir / run_layout::report, ignored) || !runtime::has_root(run_dir);
    const bool running = std::filesystem::exists(run_dir / run_layout::agent, ignored);
    const auto answer = running ? ask_root(run_dir, "status", look_deadline) : result<std::string>{};
    show_new(answer.value_or(""));
    if (!running && is_over) return {};
    silence.hear(answer);
    // A root that is busy for a moment is neither dead nor elsewhere; one that ends in order takes
    // its file away first.
    if (!answer && answer.error().code != error_code::timed_out &&
        std::filesystem::exists(run_dir / run_layout::agent, ignored))
      return tl::unexpected(answer.error());
  } while (pause());
  return {};
}

} // namespace dlrun::cli
