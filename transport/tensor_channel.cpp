#include "transport/tensor_channel.hpp"

#include "transport/paired_channel.hpp"
#include "transport/segment_client.hpp"
#include "transport/segment_server.hpp"
#include "transport/tcp_client.hpp"
#include "transport/tcp_server.hpp"

namespace dlrun::transport {
namespace {

/// A result of an implementation as one of the interface.
template <class Interface, class Made>
result<Interface> widen(Made made) {
  if (!made) return tl::unexpected(made.error());
  return Interface(std::move(*made));
}

result<std::shared_ptr<segment_offers>> open_near_offers(const channel_options& options) {
  using made = std::shared_ptr<segment_offers>;
  if (options.near == channel_kind::tcp) return widen<made>(tcp_server::start({.token = options.token}));
  return widen<made>(segment_server::start({.token = options.token}));
}

result<std::unique_ptr<segment_fetches>> open_near_fetches(const channel_options& options) {
  using made = std::unique_ptr<segment_fetches>;
  if (options.near == channel_kind::tcp) return widen<made>(tcp_client::start({.token = options.token}));
  return widen<made>(segment_client::start({.token = options.token}));
}

} // namespace

result<std::shared_ptr<segment_offers>> open_offers(const channel_options& options) {
  const auto& [listen, tls] = options.other_hosts;
  auto near = open_near_offers(options);
  if (!near || !tls) return near;
  auto far = tcp_server::start({.token = options.token, .listen = listen, .tls = tls});
  if (!far) return tl::unexpected(far.error());
  return std::make_shared<paired_offers>(std::move(*near), tls->name().host, std::move(*far));
}

result<std::unique_ptr<segment_fetches>> open_fetches(const channel_options& options) {
  const auto& tls = options.other_hosts.tls;
  auto near = open_near_fetches(options);
  if (!near || !tls) return near;
  auto far = tcp_client::start({.token = options.token, .tls = tls});
  if (!far) return tl::unexpected(far.error());
  return std::make_unique<paired_fetches>(std::move(*near), tls->name().host, std::move(*far));
}

} // namespace dlrun::transport
