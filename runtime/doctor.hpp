/// Whether the hosts of a list are fit for a job, before one begins.
#pragma once

#include "runtime/hosts_plan.hpp"
#include "runtime/prepared_job.hpp"

#include <functional>
#include <optional>

namespace dlrun::runtime {

/// The result of one check.
struct finding {
  std::string host;
  std::string check;  ///< what was looked at: "start", "data", "link to beta", ...
  std::string wrong;  ///< what is wrong, and the way out; "" when nothing is
  std::string note{}; ///< what else is to be known of it
};

struct doctor_options {
  hosts_plan hosts;
  std::optional<prepared_job> job{}; ///< whose data and needs are looked at too
  std::filesystem::path run_dir{};   ///< where the run would be
};

/// Starts the agent of each host as a run would, this host's too, and has it examine its host; the
/// agents end with this call and leave nothing behind. Reports each finding when it is known.
/// Blocks.
/// @returns how many findings are wrong, or system when this host cannot start anything.
result<std::size_t> examine_hosts(const doctor_options& options,
                                  const std::function<void(const finding&)>& tell);

} // namespace dlrun::runtime
