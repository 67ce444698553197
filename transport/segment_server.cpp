#include "transport/segment_server.hpp"

#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/exchange_wire.hpp"
#include "transport/offer_book.hpp"

#include <mutex>

namespace dlrun::transport {

namespace {

using clock = std::chrono::steady_clock;

struct offered {
  base::unique_fd descriptor;
  std::size_t bytes = 0;
};

struct connection {
  base::unique_fd socket;
  clock::time_point deadline;
};

result<base::unique_fd> listen_on(std::string_view name) {
  auto address = wire::make_abstract_address(name);
  if (!address) return tl::unexpected(address.error());
  auto socket = wire::make_socket();
  if (!socket) return socket;
  if (::bind(socket->get(), address->get(), address->length) != 0 || ::listen(socket->get(), 128) != 0)
    return base::fail_errno("cannot listen on an abstract Unix socket");
  return socket;
}

} // namespace

class segment_server::loop final : base::polled_service {
public:
  loop(segment_server_options options, std::string address, base::unique_fd listening)
      : options_(options)
      , address_(std::move(address))
      , listener_(std::move(listening)) {}

  result<void> start() { return thread_.start("dlrun-segments", "the segment server", *this); }

  const std::string& address() const { return address_; }

  result<segment_id> offer(const segment& what) {
    auto copy = what.duplicate();
    if (!copy) return tl::unexpected(copy.error());
    return offers_.add({std::move(*copy), what.size()});
  }

  void withdraw(segment_id id) { offers_.remove(id); }

  void on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) {
    const std::lock_guard lock(mutex_);
    connected_ = std::move(connected);
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    auto next = listener_.watch(fds, has_room(), now);
    for (const auto& c : connections_) {
      fds.push_back({c.socket.get(), POLLIN, 0});
      next = std::min(next, c.deadline);
    }
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    go_on(fds.subspan(1), now);
    if (fds[0].revents != 0)
      listener_.accept_waiting(now, [&](base::unique_fd socket) {
        if (wire::check_peer_user(socket.get()))
          connections_.push_back({std::move(socket), now + options_.idle});
        return has_room();
      });
  }

  bool has_room() const { return connections_.size() < options_.connections_max; }

  /// Answers who has asked and drops who has not in time. `fds` lists the connections.
  void go_on(std::span<const pollfd> fds, clock::time_point now) {
    std::vector<connection> kept;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (fds[i].revents != 0)
        answer(std::move(connections_[i].socket));
      else if (now < connections_[i].deadline)
        kept.push_back(std::move(connections_[i]));
    }
    connections_ = std::move(kept);
  }

  /// One request, one reply; what is not a request gets none. Descriptors a client sends are closed
  /// on the way.
  void answer(base::unique_fd socket) {
    wire::request asked;
    const auto got = wire::receive_packet(socket.get(), &asked, sizeof asked);
    if (!got || got->size != sizeof asked || asked.magic != wire::request_magic ||
        asked.version != wire::format_version)
      return;
    wire::reply said;
    said.segment = asked.segment;
    std::shared_ptr<const offered> found;
    if (!(asked.token == options_.token)) {
      said.status = wire::reply_status::wrong_token;
    } else if (asked.segment == wire::doorbell_request) {
      return connect(std::move(socket), said);
    } else if ((found = offers_.find({asked.segment}))) {
      said.bytes = found->bytes;
    } else {
      said.status = wire::reply_status::unknown_segment;
    }
    // A reply that cannot be sent at once is dropped with its connection: the client sees that and
    // reports it.
    wire::send_packet(socket.get(), &said, sizeof said, found ? found->descriptor.get() : -1);
  }

  /// The connection stays, in the hands of whoever wants doorbells.
  void connect(base::unique_fd socket, wire::reply said) {
    const std::lock_guard lock(mutex_);
    if (!connected_) said.status = wire::reply_status::unknown_segment;
    if (wire::send_packet(socket.get(), &said, sizeof said) == 0 && connected_)
      connected_(std::make_unique<doorbell>(std::move(socket)));
  }

  const segment_server_options options_;
  const std::string address_;
  base::listener listener_; // the thread's own
  offer_book<offered> offers_{options_.offers_max};
  std::mutex mutex_;
  std::function<void(std::unique_ptr<doorbell>)> connected_; // guarded by mutex_
  std::vector<connection> connections_;                      // the thread's own
  base::service_loop thread_;
};

segment_server::segment_server(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
segment_server::~segment_server() = default;

result<std::unique_ptr<segment_server>> segment_server::start(segment_server_options options) {
  const auto name = run_token::random();
  if (!name) return tl::unexpected(name.error());
  auto address = "dlrun-" + name->to_hex();
  auto listener = listen_on(address);
  if (!listener) return tl::unexpected(listener.error());
  auto made = std::make_unique<loop>(options, std::move(address), std::move(*listener));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<segment_server>(new segment_server(std::move(made)));
}

const std::string& segment_server::address() const { return loop_->address(); }

result<segment_id> segment_server::offer(const segment& what) { return loop_->offer(what); }

void segment_server::withdraw(segment_id id) { loop_->withdraw(id); }

void segment_server::on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) {
  loop_->on_doorbell(std::move(connected));
}

} // namespace dlrun::transport
