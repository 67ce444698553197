/// verb_end: how a verb that runs a job has ended.
#pragma once

#include "cli/complain.hpp"

#include <dlrun/report.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dlrun::runtime {
class root_home;
}

namespace dlrun::cli {

/// With what was said of it on stderr, for whoever is to be told too.
struct verb_end {
  int code = 0;                          ///< exit code
  std::string reason{};                  ///< "" where it succeeded
  std::optional<dlrun::report> report{}; ///< of the run, where that ended it
  std::optional<error_code> error{};     ///< where this did
  bool is_for_good = false;              ///< another start would end the same way, report or not
  bool waits = false;    ///< what the run has is on hosts that stay: the Job is to be suspended
  bool may_pass = false; ///< it was wrong input, but of a run that may have begun, elsewhere
  /// By which this process is the root of the run: nobody follows while it lives. Null: by none.
  std::shared_ptr<runtime::root_home> home{};
};

/// Whether the run is completed.
inline bool is_trained(const verb_end& ended) {
  return ended.report && ended.report->status == run_status::completed;
}

/// Complains of the error and ends with its exit code.
inline verb_end ended_by(const error& what) {
  return {complain(what), what.message, std::nullopt, what.code};
}

/// Complains where the run did not complete.
inline verb_end ended_with(dlrun::report report) {
  const auto code = complain_of(report);
  auto reason = report.reason;
  return {code, std::move(reason), std::move(report), std::nullopt};
}

} // namespace dlrun::cli
