/// Numbers with names.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dlrun {

/// Finished metrics by name, in the order of the specification.
using named_values = std::vector<std::pair<std::string, double>>;

} // namespace dlrun
