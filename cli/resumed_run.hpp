/// A run that goes on, as the command line shows it.
#pragma once

#include "cli/displayed_run.hpp"
#include "cli/verb_end.hpp"
#include "runtime/resumption.hpp"

namespace dlrun::cli {

/// There is nothing to do; a program gets the report as from a run.
void say_completed(const std::filesystem::path& folder, bool json);

/// Goes on with a run that is not completed, or not to its end (R38), as run_displayed(). @param
/// hosts its other hosts; nothing: this host alone. @returns how it ended
verb_end run_resumed(const runtime::resumption& resumed, const std::optional<runtime::hosts_plan>& hosts,
                     const display_choice& how, stop_signals& signals);

} // namespace dlrun::cli
