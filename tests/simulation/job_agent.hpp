/// The agent of a simulated job, on one host or several.
#pragma once

#include "tests/simulation/process.hpp"

#include <string>

namespace dlrun::simulation {

class job_agent : public process {
public:
  using process::process;
  /// The operator wants so many workers.
  virtual void scale(std::uint32_t workers) = 0;
  /// A role that it started ended, or is taken for dead: noticed after a moment.
  virtual void lost(process& which, std::string cause) = 0;
};

} // namespace dlrun::simulation
