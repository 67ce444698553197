/// The journal of a job on pods, where it is in an etcd.
#pragma once

#include "cli/kubernetes_objects.hpp"
#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>

namespace dlrun::cli {

/// Whether the control pod can reach the etcd of `job`, with files of `wanted.journal_secret`
/// alone. Fills in `wanted.journal`. @param job with relative paths as they are
/// @returns bad_spec or bad_usage, naming key or option and the way out.
result<void> settle_journal(const spec::JobSpec& job, pods_wish& wanted);

} // namespace dlrun::cli
