/// How an actor ends whose next start would end in the same way.
#pragma once

#include <caf/sec.hpp>

namespace dlrun::common {

/// The code of its error. A process that runs such an actor ends with the exit code of wrong input,
/// by which whoever started it knows.
inline constexpr auto lasting_end = caf::sec::invalid_argument;

} // namespace dlrun::common
