#include "actors/agent/beats/beat_wire.hpp"

#include <algorithm>
#include <string>

namespace dlrun::agent {
namespace {

constexpr std::string_view mark = "dlb1";
constexpr std::size_t sealed_bytes = beat_bytes - sizeof(base::hmac_key);

template <class Number>
void put(std::span<std::byte> into, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) into[at + i] = static_cast<std::byte>(number >> (8 * i));
}

template <class Number>
Number get(std::span<const std::byte> from, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= static_cast<Number>(std::to_integer<Number>(from[at + i]) << (8 * i));
  return number;
}

} // namespace

base::hmac_key pair_key(const base::hmac_key& run_key, std::string_view host) {
  return base::derived_key(run_key, std::string{"dlrun beats of host "}.append(host));
}

beat_keys keys_of_root(const base::hmac_key& pair) {
  return {base::derived_key(pair, "from root"), base::derived_key(pair, "to root")};
}

beat_keys keys_of_host(const base::hmac_key& pair) {
  const auto other = keys_of_root(pair);
  return {other.receive, other.send};
}

std::optional<std::uint64_t> claimed_boot(std::span<const std::byte> datagram) {
  if (datagram.size() != beat_bytes) return std::nullopt;
  return get<std::uint64_t>(datagram, 8);
}

beat_datagram sealed(const beat& what, const base::hmac_key& key) {
  beat_datagram made{};
  std::ranges::copy(std::as_bytes(std::span{mark}), made.begin());
  put(made, 4, what.turn_age_ms);
  put(made, 8, what.boot);
  put(made, 16, what.sequence);
  put(made, 24, what.heard_boot);
  put(made, 32, what.heard_sequence);
  std::ranges::copy(base::hmac_sha256(key, std::span{made}.first<sealed_bytes>()),
                    made.begin() + sealed_bytes);
  return made;
}

std::optional<beat> opened(std::span<const std::byte> datagram, const base::hmac_key& key) {
  if (datagram.size() != beat_bytes) return std::nullopt;
  const auto said = datagram.first(sealed_bytes);
  if (!std::ranges::equal(said.first(mark.size()), std::as_bytes(std::span{mark}))) return std::nullopt;
  if (!base::is_same_secret(base::hmac_sha256(key, said), datagram.subspan(sealed_bytes)))
    return std::nullopt;
  return beat{.boot = get<std::uint64_t>(said, 8),
              .sequence = get<std::uint64_t>(said, 16),
              .heard_boot = get<std::uint64_t>(said, 24),
              .heard_sequence = get<std::uint64_t>(said, 32),
              .turn_age_ms = get<std::uint32_t>(said, 4)};
}

} // namespace dlrun::agent
