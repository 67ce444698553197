#include "transport/tensor_channel.hpp"

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

} // namespace

result<std::shared_ptr<segment_offers>> open_offers(channel_kind kind, const run_token& token) {
  using made = std::shared_ptr<segment_offers>;
  if (kind == channel_kind::tcp) return widen<made>(tcp_server::start({.token = token}));
  return widen<made>(segment_server::start({.token = token}));
}

result<std::unique_ptr<segment_fetches>> open_fetches(channel_kind kind, const run_token& token) {
  using made = std::unique_ptr<segment_fetches>;
  if (kind == channel_kind::tcp) return widen<made>(tcp_client::start({.token = token}));
  return widen<made>(segment_client::start({.token = token}));
}

} // namespace dlrun::transport
