/// What the root's status says of copies of PS shards, and of what would be lost with a host, for
/// people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace dlrun::cli {

/// Pure. Lines on where each copy is, how far behind, and what it costs once that was measured;
/// none in a job without copies.
std::vector<std::string> tell_copies(const nlohmann::ordered_json& status);

/// Pure. Lines on which hosts may be lost now, one of them, and what would be lost with others;
/// none of a job that has one host only, or has not begun.
std::vector<std::string> tell_losses(const nlohmann::ordered_json& status);

} // namespace dlrun::cli
