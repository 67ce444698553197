#include "base/ipv4_address.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <fmt/format.h>

namespace dlrun::base {

std::optional<sockaddr_in> parse_ipv4_address(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const std::string host{text.substr(0, colon)};
  const auto port = text.substr(colon + 1);
  const auto* const last = port.data() + port.size();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  std::uint16_t number = 0;
  const auto [end, failed] = std::from_chars(port.data(), last, number);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 || failed != std::errc{} || end != last)
    return std::nullopt;
  address.sin_port = htons(number);
  return address;
}

std::string to_string(const sockaddr_in& address) {
  char host[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
  return fmt::format("{}:{}", host, ntohs(address.sin_port));
}

} // namespace dlrun::base
