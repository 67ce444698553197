#include "engine/compute_threads.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <omp.h>

namespace dlrun::engine {

result<void> may_have_threads(int count) {
  const int most = omp_get_thread_limit();
  if (count <= most) return {};
  return fail(error_code::bad_usage,
              fmt::format("OMP_THREAD_LIMIT in the environment lets a process have {} threads to compute "
                          "with, and cluster.threads_per_worker is {}: unset it, or make it larger",
                          most, count));
}

/// OMP_DYNAMIC would take threads away, and OMP_MAX_ACTIVE_LEVELS=0 all but one.
void use_threads(int count) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(std::max(1, omp_get_max_active_levels()));
  omp_set_num_threads(count);
}

} // namespace dlrun::engine
