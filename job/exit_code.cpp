#include "job/exit_code.hpp"

namespace dlrun::job {

exit_code exit_code_for(error_code code) {
  switch (code) {
  case error_code::bad_usage:
  case error_code::bad_spec:
  case error_code::bad_data: return exit_code::bad_input;
  case error_code::interrupted: return exit_code::interrupted;
  case error_code::system:
  case error_code::timed_out:
  case error_code::fenced:
  case error_code::protocol:
  case error_code::restart_budget_exceeded:
  case error_code::role_lost:
  case error_code::limit_exceeded:
  case error_code::diverged:
  case error_code::storage_damaged:
  case error_code::disk_full:
  case error_code::in_use: return exit_code::job_failed;
  }
  return exit_code::job_failed;
}

exit_code exit_code_for(const report& value) {
  if (value.status == run_status::interrupted) return exit_code::interrupted;
  if (value.status == run_status::failed || value.samples_duplicated != 0) return exit_code::job_failed;
  if (!value.parked_shards.empty()) return exit_code::records_left_out;
  return value.samples_missing == 0 ? exit_code::success : exit_code::job_failed;
}

} // namespace dlrun::job
