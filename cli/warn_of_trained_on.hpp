/// The warning of a job whose validation data was trained on.
#pragma once

#include "cli/complain.hpp"
#include "runtime/prepared_job.hpp"

#include <fmt/format.h>

namespace dlrun::cli {

inline void warn_of_trained_on(const runtime::prepared_job& job) {
  if (job.validation_records_trained_on == 0) return;
  warn(fmt::format("data.validation: {} of its {} records are in data.train too: figures on them are not "
                   "those of unseen data",
                   job.validation_records_trained_on, job.validation_records));
}

} // namespace dlrun::cli
