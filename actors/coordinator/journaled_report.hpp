/// The report of a run whose coordinator has left none.
#pragma once

#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/coordinator/job_report.hpp"

namespace dlrun::coordinator {

/// What the journal of the run knows for it. `ended`: how this start of the run did.
report_sources journaled_sources(const common::job_facts& job, const journal_entries& entries,
                                 protocol::job_ended ended);

} // namespace dlrun::coordinator
