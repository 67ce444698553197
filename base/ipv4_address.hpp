/// IPv4 addresses with ports, as text.
#pragma once

#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::base {

/// Reads "10.0.0.1:41234". Nothing for a name, or any other text.
std::optional<sockaddr_in> parse_ipv4_address(std::string_view text);
/// As parse_ipv4_address() reads it.
std::string to_string(const sockaddr_in& address);

} // namespace dlrun::base
