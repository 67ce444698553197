/// How many OpenMP threads compute, whatever the environment of the process says.
#pragma once

#include <dlrun/error.hpp>

namespace dlrun::engine {

/// oneDNN waits for ever for threads that OpenMP does not give, and bits depend on their number.
/// @returns bad_usage where the environment lets this process have fewer (OMP_THREAD_LIMIT, which
/// nobody can change any more).
result<void> may_have_threads(int count);

/// What the calling thread computes from now on has so many: no more, no fewer.
void use_threads(int count);

} // namespace dlrun::engine
