#include "transport/tcp_server.hpp"

#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/offer_book.hpp"
#include "transport/tcp_connection.hpp"

#include <arpa/inet.h>

namespace dlrun::transport {
namespace {

using clock = std::chrono::steady_clock;

struct listening {
  base::unique_fd socket;
  tcp::address at;
};

result<sockaddr_in> address_to_listen_on(const tcp_server_options& options) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  if (::inet_pton(AF_INET, options.listen.c_str(), &at.sin_addr) != 1 || at.sin_addr.s_addr == INADDR_ANY)
    return fail(error_code::bad_usage,
                fmt::format("tensors cannot be served at '{}': it must be the IPv4 address, in numbers, by "
                            "which other hosts reach this one",
                            options.listen));
  if (!options.tls && !tcp::is_loopback(at))
    return fail(error_code::bad_usage,
                fmt::format("tensors are not served at {} without TLS", options.listen));
  return at;
}

result<listening> listen_at(const tcp_server_options& options) {
  const auto at = address_to_listen_on(options);
  if (!at) return tl::unexpected(at.error());
  const auto identity = run_token::random();
  if (!identity) return tl::unexpected(identity.error());
  auto socket = tcp::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  listening made{std::move(*socket), {*at, identity->bytes, options.tls != nullptr}};
  auto* const where = reinterpret_cast<sockaddr*>(&made.at.at);
  socklen_t length = sizeof made.at.at;
  if (::bind(made.socket.get(), where, length) != 0 || ::listen(made.socket.get(), 1024) != 0 ||
      ::getsockname(made.socket.get(), where, &length) != 0)
    return base::fail_errno(fmt::format("cannot listen on a port of {} for tensors", options.listen));
  return made;
}

} // namespace

class tcp_server::loop final : base::polled_service {
public:
  loop(tcp_server_options options, listening listener)
      : options_(std::move(options))
      , listener_(std::move(listener.socket))
      , identity_(listener.at.server)
      , address_(tcp::to_string(listener.at)) {}

  result<void> start() { return thread_.start("dlrun-tensors", "the tensor server", *this); }

  const std::string& address() const { return address_; }

  result<segment_id> offer(const segment& what) {
    auto mapped = map(what);
    if (!mapped) return tl::unexpected(mapped.error());
    return offers_.add(std::move(*mapped));
  }

  result<void> offer_as(segment_id id, const segment& what) {
    auto mapped = map(what);
    if (!mapped) return tl::unexpected(mapped.error());
    return offers_.add_as(id, std::move(*mapped));
  }

  result<void> offer_memory_as(segment_id id, std::span<const std::byte> memory,
                               std::shared_ptr<const void> owner) {
    return offers_.add_as(id, segment::of_copy(memory, std::move(owner)));
  }

  void withdraw(segment_id id) { offers_.remove(id); }

private:
  static result<segment> map(const segment& what) {
    auto copy = what.duplicate();
    if (!copy) return tl::unexpected(copy.error());
    return segment::adopt(std::move(*copy), what.size());
  }

  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    auto next = listener_.watch(fds, has_room(), now);
    for (const auto& c : connections_) {
      fds.push_back({c.socket(), c.wants(), 0});
      next = std::min(next, c.is_ready() ? now : c.deadline());
    }
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    go_on(fds.subspan(1), now);
    if (fds[0].revents != 0)
      listener_.accept_waiting(now, [&](base::unique_fd socket) {
        greet(std::move(socket), now);
        return has_room();
      });
  }

  bool has_room() const { return connections_.size() < options_.connections_max; }

  /// `fds` lists the connections.
  void go_on(std::span<const pollfd> fds, clock::time_point now) {
    const auto find = [this](segment_id id) { return offers_.find(id); };
    std::size_t at = 0;
    std::erase_if(connections_, [&](tcp::connection& c) {
      if (fds[at++].revents != 0 || c.is_ready()) return !c.go_on(find, now);
      if (now < c.deadline()) return false;
      c.reset();
      return true;
    });
  }

  void greet(base::unique_fd socket, clock::time_point now) {
    const auto mine = run_token::random();
    if (!mine) return;
    tcp::set_no_delay(socket.get());
    std::optional<security::tls_session> session;
    if (options_.tls) {
      auto started = security::tls_session::start(*options_.tls, security::tls_session::side::server);
      if (!started) return;
      session = std::move(*started);
      tcp::set_watched(socket.get());
    }
    connections_.emplace_back(tcp::stream(std::move(socket), std::move(session)), options_.token, identity_,
                              mine->bytes, options_.idle, now);
  }

  const tcp_server_options options_;
  base::listener listener_; // the thread's own
  const tcp::nonce identity_;
  const std::string address_;
  offer_book<segment> offers_{options_.offers_max};
  std::vector<tcp::connection> connections_; // the thread's own
  base::service_loop thread_;
};

tcp_server::tcp_server(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
tcp_server::~tcp_server() = default;

result<std::unique_ptr<tcp_server>> tcp_server::start(tcp_server_options options) {
  auto listener = listen_at(options);
  if (!listener) return tl::unexpected(listener.error());
  auto made = std::make_unique<loop>(options, std::move(*listener));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<tcp_server>(new tcp_server(std::move(made)));
}

const std::string& tcp_server::address() const { return loop_->address(); }

result<segment_id> tcp_server::offer(const segment& what) { return loop_->offer(what); }

result<void> tcp_server::offer_as(segment_id id, const segment& what) { return loop_->offer_as(id, what); }

result<void> tcp_server::offer_memory_as(segment_id id, std::span<const std::byte> memory,
                                         std::shared_ptr<const void> owner) {
  return loop_->offer_memory_as(id, memory, std::move(owner));
}

void tcp_server::withdraw(segment_id id) { loop_->withdraw(id); }

} // namespace dlrun::transport
