/// Whether processes of this host reach each other by TCP.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// Of a job on this host alone, before anything is made for it: without a loopback interface, as in
/// a network namespace of its own, the tensors of `cluster.tensor_channel: tcp` never arrive.
/// Blocks for a second at most. @returns system, naming the address, the reason and the way out.
result<void> check_loopback(const spec::JobSpec& spec);

} // namespace dlrun::runtime
