/// What two hosts must have in common for their numbers to be the same bits (invariant I2).
#pragma once

#include <string>

namespace dlrun::common {

std::string dlrun_version();

/// One line of dlrun's version and engine::processor_fingerprint(). Compared when a role joins.
std::string host_fingerprint(int threads_per_worker);

} // namespace dlrun::common
