/// Whether the journal that a job names can be used, before anything is made for the run.
#pragma once

#include "actors/common/job_journal.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// For a run that is to begin with its journal in an etcd: checks that a quorum answers, that the
/// etcd is new enough and takes what the job will write, and that nothing is under the run's
/// prefix. Fills in prefix and cluster_id where they are "auto". Does nothing for other journals.
/// @returns bad_usage with the way out, whatever is wrong.
result<void> settle_journal(spec::JobSpec& spec);

/// For a run that begins, as its last preparation: makes the journal in its etcd, with the number
/// `run` of the run in it. Refuses when another run has taken the same prefix meanwhile.
/// @returns as settle_journal().
result<void> begin_journal(const spec::JobSpec& spec, std::uint64_t run);

/// For a run that is resumed. @returns bad_usage with the way out when another run has begun the
/// journal at `place`; else as common::read_journal().
result<void> check_journal_is_of(const common::journal_place& place, std::uint64_t run);

/// For a run that is resumed, whose prefix is known: fills in cluster_id where it is "auto".
/// @returns as settle_journal().
result<void> settle_journal_again(spec::JobSpec& spec);

/// Checks, on a host where the coordinator may run, that the files are there with which it reaches
/// the journal. Asks no etcd. @returns bad_usage.
result<void> check_journal_here(const spec::JobSpec& spec);

} // namespace dlrun::runtime
