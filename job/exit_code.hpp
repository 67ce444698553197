/// Exit codes of the program.
#pragma once

#include <dlrun/report.hpp>

namespace dlrun::job {

enum class exit_code : int {
  /// All data was trained.
  success = 0,
  /// The job failed; the last line says why.
  job_failed = 1,
  /// Bad usage, specification or data: nothing was trained.
  bad_input = 2,
  /// Finished, but parked data was left out.
  records_left_out = 3,
  /// Stopped before the end; can be resumed.
  interrupted = 130,
};

/// The exit code for an error that ended the program.
exit_code exit_code_for(error_code code);
/// The exit code for a run that ended with this report. A job never succeeds with data untrained or
/// trained twice.
exit_code exit_code_for(const report& value);

} // namespace dlrun::job
