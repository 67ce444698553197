#include "runtime/root_beats.hpp"

#include <algorithm>
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
