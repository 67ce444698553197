/// What the bits of a run depend on besides its specification and its data: what the run began
/// with, and what is here.
#pragma once

#include "proto/run_record.pb.h"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::runtime {

/// Notes what this host computes and decodes with, where the record has nothing of that yet: of a
/// run that begins, or one of dlrun 0.1.
void note_fingerprint(records::RunRecord& record, const spec::JobSpec& spec);

/// What of this host is otherwise than the record has it, for people; "" when it would compute the
/// same bits, or the record has no fingerprint.
std::string fingerprint_difference(const records::RunRecord& record, const spec::JobSpec& spec);
/// The same for the libraries that decode data. The data itself is compared by its digests, so that
/// this is only ever a reason, never a fault.
std::string decoder_difference(const records::RunRecord& record);

/// May this host go on with the run? Then this process computes with cluster.cpu_level from here
/// on.
/// @returns bad_usage for one that would compute other bits, naming what differs and the way out,
/// unless `spec` lets it, and for one without cluster.cpu_level
result<void> check_same_arithmetic(const records::RunRecord& record, const spec::JobSpec& spec);

} // namespace dlrun::runtime
