/// What `dlrun status` prints for people.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace dlrun::cli {

/// @param status as with --json (docs/cli.md)
void tell_status(const nlohmann::ordered_json& status);

} // namespace dlrun::cli
