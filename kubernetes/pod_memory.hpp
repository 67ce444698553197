/// Memory of pods, as Kubernetes writes it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace dlrun::kubernetes {

/// Of the template for pods of hosts: what one of them may have at most. Without it no pod gets
/// more than the template says.
inline constexpr auto memory_max_annotation = "dlrun/memory-max";

/// Of bytes, as in 1000, 512Mi or 4Gi. @returns nothing for what is none, or more than 2^63.
std::optional<std::uint64_t> memory_bytes(const std::string& text);
/// In whole MiB, rounded up.
std::string memory_text(std::uint64_t bytes);
/// Of the pod after one for which that was too little: half as much again. @returns the same where
/// `max` allows no more
std::uint64_t grown_memory(std::uint64_t bytes, std::uint64_t max);
/// What the template allows; 0: nothing more than it says.
std::uint64_t memory_max_of(const nlohmann::json& pod_template);

} // namespace dlrun::kubernetes
