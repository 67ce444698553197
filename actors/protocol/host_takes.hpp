/// Which roles a host takes, beside those that its place in the job brings along.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlrun::protocol {

/// As users say it of a host: `hosts[].takes` of the list of hosts, `dlrun agent --takes`.
enum class host_takes : std::uint8_t {
  any,
  ps_shards, ///< PS shards and their copies: no worker is ever there
  workers    ///< workers: PS shards and copies only while no other host is open for them
};

/// Of a word that was looked at where it was read; "": any.
constexpr host_takes host_takes_of(std::string_view word) {
  return word == "ps_shards" ? host_takes::ps_shards
         : word == "workers" ? host_takes::workers
                             : host_takes::any;
}

} // namespace dlrun::protocol
