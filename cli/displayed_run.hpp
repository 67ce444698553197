/// A run as the command line shows it.
#pragma once

#include "base/pulse.hpp"
#include "cli/stop_signals.hpp"
#include "cli/verb_end.hpp"
#include "runtime/local_run.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dlrun::cli {

/// What a SIGTERM is for.
enum class term_wish : std::uint8_t {
  stop,
  hand_over, ///< another process goes on with the run on the hosts as they are
  suspend,   ///< stop, and other hosts may go for good (R42)
};

/// Called when the job has begun (run_observer::begun()), before anything of it is shown. @returns
/// why it must not begin after all.
using begun_hook = std::function<result<void>(const std::filesystem::path& run_dir)>;

struct display_choice {
  bool json = false; ///< stdout is for a program
  begun_hook begun{};
  /// Who follows the run beside that: as runtime::run_observer has it.
  std::function<result<void>()> hosts_may_join = [] { return result<void>{}; };
  agent::join_check may_join = [](const auto&) { return result<void>{}; };
  std::function<void(const agent::run_snapshot&)> hosts_come = [](const auto&) {};
  std::function<void(const agent::run_snapshot&)> seen = [](const auto&) {};
  /// In place of seen() while another process may be the root.
  std::function<void()> in_doubt = [] {};
  /// Asked as for signals. Set: the run is to end in order, for that reason.
  std::function<std::optional<std::string>()> must_end = [] { return std::nullopt; };
  /// Asked once, at a SIGTERM.
  std::function<term_wish()> on_term = [] { return term_wish::stop; };
  std::function<std::vector<std::string>()> held_up_by = [] { return std::vector<std::string>{}; };
  /// As runtime::run_observer has it. @param home by which this process is the root; null: by none
  std::function<std::string(const std::stop_token&, const std::shared_ptr<runtime::root_home>& home)>
      deliver = [](const auto&, const auto&) { return std::string{}; };
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>(); ///< of this process
};

/// Runs the job: shows progress, ends in order on SIGINT, SIGTERM (a second of these kills) and
/// SIGHUP. Blocks. That nobody reads stdout any more is no failure.
/// @param signals taken over before anything was made for the run; what came since ends it too
/// @returns how it ended, after the reason was printed where it is not success.
verb_end run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options,
                       const display_choice& how, stop_signals& signals);

} // namespace dlrun::cli
