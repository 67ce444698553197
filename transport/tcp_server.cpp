#include "transport/tcp_server.hpp"

#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/offer_book.hpp"
#include "transport/tcp_connection.hpp"

namespace dlrun::transport {
namespace {

using clock = std::chrono::steady_clock;

struct listening {
  base::unique_fd socket;
  tcp::address at;
};

result<listening> listen_on_loopback() {
  const auto identity = run_token::random();
  if (!identity) return tl::unexpected(identity.error());
  auto socket = tcp::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  listening made{std::move(*socket), {{}, identity->bytes}};
  made.at.at.sin_family = AF_INET;
  made.at.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const where = reinterpret_cast<sockaddr*>(&made.at.at);
  socklen_t length = sizeof made.at.at;
  if (::bind(made.socket.get(), where, length) != 0 || ::listen(made.socket.get(), 1024) != 0 ||
      ::getsockname(made.socket.get(), where, &length) != 0)
    return base::fail_errno("cannot listen on a port of the loopback interface");
  return made;
}

} // namespace

class tcp_server::loop final : base::polled_service {
public:
  loop(tcp_server_options options, listening listener)
      : options_(options)
      , listener_(std::move(listener.socket))
      , identity_(listener.at.server)
      , address_(tcp::to_string(listener.at)) {}

  result<void> start() { return thread_.start("dlrun-tensors", "the tensor server", *this); }

  const std::string& address() const { return address_; }

  result<segment_id> offer(const segment& what) {
    auto copy = what.duplicate();
    if (!copy) return tl::unexpected(copy.error());
    auto mapped = segment::adopt(std::move(*copy), what.size());
    if (!mapped) return tl::unexpected(mapped.error());
    return offers_.add(std::move(*mapped));
  }

  void withdraw(segment_id id) { offers_.remove(id); }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    auto next = listener_.pause_end(now);
    fds.push_back(listener_.watched(has_room(), now));
    for (const auto& c : connections_) {
      fds.push_back({c.socket(), c.wants(), 0});
      next = std::min(next, c.deadline());
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
      if (fds[at++].revents != 0) return !c.go_on(find, now);
      if (now < c.deadline()) return false;
      c.reset();
      return true;
    });
  }

  void greet(base::unique_fd socket, clock::time_point now) {
    const auto mine = run_token::random();
    if (!mine) return;
    tcp::set_no_delay(socket.get());
    connections_.emplace_back(std::move(socket), options_.token, identity_, mine->bytes, options_.idle, now);
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
  auto listener = listen_on_loopback();
  if (!listener) return tl::unexpected(listener.error());
  auto made = std::make_unique<loop>(options, std::move(*listener));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<tcp_server>(new tcp_server(std::move(made)));
}

const std::string& tcp_server::address() const { return loop_->address(); }

result<segment_id> tcp_server::offer(const segment& what) { return loop_->offer(what); }

void tcp_server::withdraw(segment_id id) { loop_->withdraw(id); }

} // namespace dlrun::transport
