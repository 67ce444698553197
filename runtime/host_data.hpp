/// The data of a job on a host that is not the root's.
#pragma once

#include "proto/host_bundle.pb.h"
#include "runtime/data_fetch.hpp"
#include "runtime/prepared_job.hpp"

namespace dlrun::runtime {

/// The part of the recorded data that is on this host.
struct data_here {
  std::vector<array_here> arrays; ///< in the order of the record
  std::uint64_t missing_bytes() const;
  /// What is missing or differs, naming each file and the place in it; "" when nothing is.
  std::string why() const;
};

/// Decodes the files at the job's paths on this host, and compares them with what the root
/// recorded. `bundle` must outlive the answer. @returns protocol for a record that makes no sense.
result<data_here> look_at_data(const bootstrap::HostBundle& bundle);

/// The arrays as data of the job; each must be there.
result<data::job_data>
assembled_data(const spec::DataSpec& spec,
               const std::vector<std::pair<data::array_place, data::stored_array>>& arrays);

/// Prepares the job on a host that has all of the data. @returns as prepare_job().
result<prepared_job> prepare_with(const spec::JobSpec& spec, const data_here& here);

/// Checks that there is memory for the missing data, and that other hosts may send it (data.share).
/// @returns bad_data naming the host, what is missing, and the way out.
result<void> check_can_be_given(const bootstrap::HostBundle& bundle, const data_here& here);

/// A job that was prepared on another host, and what other hosts have sent of its data.
struct host_job {
  prepared_job job;
  protocol::data_intake intake{};
};

/// The job of the bundle, with what is here of its data, and the rest from hosts that have it.
/// Blocks. `fetch` says how; its root is that of the bundle. @returns bad_data naming the host, and
/// what is missing and why it does not come; interrupted; else as prepare_job().
result<host_job> prepare_on_host(const bootstrap::HostBundle& bundle, data_fetch_options fetch);

} // namespace dlrun::runtime
