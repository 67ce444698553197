/// What the root of a job of several hosts needs to exchange beats with them, and what each of them
/// is told of it.
#pragma once

#include "actors/agent/beats/beat_exchange.hpp"
#include "proto/host_bundle.pb.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace dlrun::runtime {

struct root_beats {
  std::shared_ptr<agent::beat_exchange> exchange;
  base::hmac_key key{};   ///< of the run, which no host is given
  std::uint64_t boot = 0; ///< that they name
};

/// @returns bad_usage or system as beat_exchange::start().
result<root_beats> start_beats(const agent::beat_options& options, const base::hmac_key& key);
/// Starts to exchange beats under a new key. @param address of an interface of this host
/// @param boot random number of the run
result<root_beats> start_beats(const std::string& address, std::uint64_t boot);

/// The beats of a host: on the number of the root's port, if that is free there. So a root that
/// comes back elsewhere knows where to call the host (R39). @returns as beat_exchange::start().
result<std::unique_ptr<agent::beat_exchange>> start_host_beats(const bootstrap::HostBundle& bundle,
                                                               std::uint64_t boot);
/// Calls the agent of a host that was at that number, for as long as it may wait for a root.
/// @param port of its beats  @returns bad_usage for what is no number.
result<void> call_host(const root_beats& beats, const std::string& host, const std::string& number,
                       std::uint16_t port, std::chrono::milliseconds time);

/// Writes into the bundle of a host where, and with which secret, it reaches the root.
void tell_of_beats(const root_beats& beats, bootstrap::HostBundle& bundle);
/// The root, as the host of the bundle watches it.
agent::beat_peer root_of(const bootstrap::HostBundle& bundle);

} // namespace dlrun::runtime
