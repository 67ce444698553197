/// What `dlrun doctor` learns of a host, on that host.
#pragma once

#include "proto/host_bundle.pb.h"

#include <dlrun/error.hpp>
#include <string_view>

namespace dlrun::runtime {

/// Before each line of JSON that the host says: what a login prints is no such line.
inline constexpr std::string_view examination_mark = "dlrun-host: ";

/// Says on `output` what is wrong with this host for the job of the bundle, where others reach it,
/// from where it beats, its time and its build; exchanges beats with the root, and answers the
/// lines that come on `input` until that is closed: "time", and "reach NUMBER:PORT". Nothing is
/// left on the host. @returns system.
result<void> examine_here(const bootstrap::HostBundle& bundle, int input, int output);

} // namespace dlrun::runtime
