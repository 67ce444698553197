/// Beats as datagrams. One has 72 bytes, integers little-endian:
///
///     0  "dlb1"   4  turn_age_ms   8  boot   16  sequence   24  heard_boot   32  heard_sequence
///     40 HMAC-SHA-256 of the 40 bytes before, with the key of this pair of hosts and this
///     direction
#pragma once

#include "base/hmac.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dlrun::agent {

/// What one end of a pair says to the other.
struct beat {
  std::uint64_t boot = 0;           ///< random number of this start of the sender
  std::uint64_t sequence = 0;       ///< of that, from 1
  std::uint64_t heard_boot = 0;     ///< the start of the receiver that the sender hears,
  std::uint64_t heard_sequence = 0; ///< and the newest beat of it that came; 0: none
  std::uint32_t turn_age_ms = 0;    ///< how long ago the actor of the sender had its last turn

  friend bool operator==(const beat&, const beat&) = default;
};

inline constexpr std::size_t beat_bytes = 72;
using beat_datagram = std::array<std::byte, beat_bytes>;

/// The secrets of one pair, as one end has them.
struct beat_keys {
  base::hmac_key send;
  base::hmac_key receive;
};
/// The secret that the root shares with one host, which tells that host nothing of any other's.
base::hmac_key pair_key(const base::hmac_key& run_key, std::string_view host);
beat_keys keys_of_root(const base::hmac_key& pair);
beat_keys keys_of_host(const base::hmac_key& pair);

/// The boot that a datagram claims to be of, without a proof: whose key to try. Nothing for another
/// length.
std::optional<std::uint64_t> claimed_boot(std::span<const std::byte> datagram);
beat_datagram sealed(const beat& what, const base::hmac_key& key);
/// @returns nothing for what is not of that length, or was not made with that key.
std::optional<beat> opened(std::span<const std::byte> datagram, const base::hmac_key& key);

} // namespace dlrun::agent
