#include "runtime/root_beats.hpp"

#include "actors/common/clock.hpp"
#include "base/ipv4_address.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace dlrun::runtime {

result<root_beats> start_beats(const agent::beat_options& options, const base::hmac_key& key) {
  auto exchange = agent::beat_exchange::start(options);
  if (!exchange) return tl::unexpected(exchange.error());
  return root_beats{std::move(*exchange), key, options.boot};
}

result<root_beats> start_beats(const std::string& address, std::uint64_t boot) {
  const auto key = base::random_key();
  if (!key) return tl::unexpected(key.error());
  return start_beats({.address = address, .boot = boot}, *key);
}

result<std::unique_ptr<agent::beat_exchange>> start_host_beats(const bootstrap::HostBundle& bundle,
                                                               std::uint64_t boot) {
  agent::beat_options options{.address = bundle.address(), .boot = boot};
  const auto root = base::parse_ipv4_address(bundle.root_beats_at());
  const auto own = base::parse_ipv4_address(bundle.address() + ":0");
  // There the next root needs it.
  const bool is_roots_number = root && own && root->sin_addr.s_addr == own->sin_addr.s_addr;
  if (root && !is_roots_number) {
    options.port = ntohs(root->sin_port);
    if (auto made = agent::beat_exchange::start(options)) return made;
    options.port = 0;
  }
  return agent::beat_exchange::start(options);
}

result<void> call_host(const root_beats& beats, const std::string& host, const std::string& number,
                       std::uint16_t port, std::chrono::milliseconds time) {
  auto peer = agent::host_seen_by_root(beats.key, host, 0);
  peer.address = fmt::format("{}:{}", number, port);
  return beats.exchange->call(peer, common::now() + time);
}

void tell_of_beats(const root_beats& beats, bootstrap::HostBundle& bundle) {
  bundle.set_root_beats_at(beats.exchange->address());
  bundle.set_root_beats_boot(beats.boot);
  const auto key = agent::pair_key(beats.key, bundle.host());
  bundle.set_beat_key(key.data(), key.size());
}

agent::beat_peer root_of(const bootstrap::HostBundle& bundle) {
  base::hmac_key key{};
  std::ranges::copy(std::as_bytes(std::span{bundle.beat_key()}), key.begin());
  return {bundle.root(), bundle.root_beats_boot(), bundle.root_beats_at(), agent::keys_of_host(key)};
}

} // namespace dlrun::runtime
