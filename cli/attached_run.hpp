/// A run of another process, shown as its root would show it.
#pragma once

#include "cli/line_tail.hpp"
#include "runtime/run_observer.hpp"

#include <dlrun/error.hpp>
#include <dlrun/report.hpp>
#include <functional>
#include <memory>

namespace dlrun::cli {

/// What happens from its making on is shown: progress and events of before are not. Not
/// thread-safe.
class attached_run {
public:
  /// Makes the display of a run that began at that time.
  using display_maker = std::function<std::unique_ptr<runtime::run_observer>(protocol::time_point started)>;

  attached_run(std::filesystem::path run_dir, display_maker make_display);

  /// Shows what is new. `status`: what the root answered, "" when it did not.
  void look(const std::string& status, protocol::time_point now);
  /// The run is over: shows what it came to. @returns bad_usage when it has no report,
  /// role_lost when it is complete and a part of its model is on other hosts still.
  result<dlrun::report> end(protocol::time_point now);

private:
  std::filesystem::path run_dir_;
  line_tail events_;
  display_maker make_display_;
  std::unique_ptr<runtime::run_observer> display_; ///< null until the run has told how far it is
};

} // namespace dlrun::cli
