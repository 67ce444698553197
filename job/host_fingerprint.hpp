/// What this machine computes with.
#pragma once

#include <dlrun/report.hpp>

namespace dlrun::job {

/// The CPU's model and the newest instruction set among those that numeric libraries choose by.
/// Bits of results are promised among hosts where these are equal.
host_fingerprint detect_host_fingerprint(std::uint32_t threads);

/// The value of "model name" in the text of /proc/cpuinfo; "unknown" if there is none.
std::string cpu_model_from(const std::string& cpuinfo);

} // namespace dlrun::job
