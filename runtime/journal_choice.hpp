/// Whether the journal that a job names can be used, before anything is made for the run.
#pragma once

#include "actors/common/job_journal.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// Of a run that is to begin. Where its journal is in an etcd: sees that a quorum of it answers, is
/// new enough, takes what the job will write, and has nothing under the run's prefix. Fills in
/// prefix and cluster_id where they are "auto".
/// @returns bad_usage with the way out, whatever is wrong.
result<void> settle_journal(spec::JobSpec& spec);

/// Of a run that begins now, after all else: what is last. Makes the journal, where it is in an
/// etcd, with the number `run` of the run in it; another run that settled on the same prefix
/// meanwhile is refused here.
/// @returns the same.
result<void> begin_journal(const spec::JobSpec& spec, std::uint64_t run);

/// Of a run that is to go on. @returns bad_usage with the way out when another run has begun the
/// journal at `place`; as common::read_journal().
result<void> check_journal_is_of(const common::journal_place& place, std::uint64_t run);

/// Of a run that goes on, whose prefix is known. Fills in cluster_id where it is "auto".
/// @returns the same.
result<void> settle_journal_again(spec::JobSpec& spec);

/// Of a host where its coordinator may run: whether the files are there that lead to the journal,
/// and what it takes to ask for it. No etcd is asked. @returns bad_usage.
result<void> check_journal_here(const spec::JobSpec& spec);

} // namespace dlrun::runtime
