/// Durations and sizes as people write them: "500ms", "1.5s", "10GB".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dlrun::job {

/// A number and one of ns, us, ms, s, min, h, d. @returns seconds; nothing for any other text.
std::optional<double> parse_duration(std::string_view text);

/// A number and one of B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024); no unit means
/// bytes. @returns bytes, rounded down; nothing for any other text or more than 2^63.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

} // namespace dlrun::job
