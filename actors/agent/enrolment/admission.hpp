/// A host that a job has let in.
#pragma once

#include <cstdint>
#include <string>

namespace dlrun::agent {

/// Its name, its place among the hosts of the job, and which try of it to come this is.
struct admission {
  std::string host;
  std::uint32_t index = 0;
  std::uint64_t attempt = 0;
};

} // namespace dlrun::agent
