#include "transport/segment_server.hpp"

#include "base/os_error.hpp"
#include "base/service_thread.hpp"
#include "base/wake_event.hpp"
#include "transport/exchange_wire.hpp"
#include "transport/offer_book.hpp"

#include <atomic>
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

class segment_server::loop {
public:
  loop(segment_server_options options, std::string address, base::unique_fd listener, base::wake_event wake)
      : options_(options)
      , address_(std::move(address))
      , listener_(std::move(listener))
      , wake_(std::move(wake)) {}

  ~loop() {
    stopping_ = true;
    wake_.notify();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    thread_ = base::start_service_thread("dlrun-segments", [this] { run(); });
  }

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
  void run() {
    std::vector<pollfd> fds;
    while (!stopping_) {
      const auto before = clock::now();
      const bool accepting = connections_.size() < options_.connections_max && before >= accept_again_;
      fds.assign({{wake_.fd(), POLLIN, 0}, {accepting ? listener_.get() : -1, POLLIN, 0}});
      for (const auto& c : connections_) fds.push_back({c.socket.get(), POLLIN, 0});
      base::poll_until(fds, next_deadline(before));
      if (fds[0].revents != 0) wake_.drain();
      serve(fds, clock::now());
      if (fds[1].revents != 0) accept_waiting(clock::now());
    }
  }

  clock::time_point next_deadline(clock::time_point now) const {
    auto next = clock::time_point::max();
    if (accept_again_ > now) next = accept_again_;
    for (const auto& c : connections_) next = std::min(next, c.deadline);
    return next;
  }

  /// Answers who has asked and drops who has not in time. `fds` lists the connections from index 2 on.
  void serve(const std::vector<pollfd>& fds, clock::time_point now) {
    std::vector<connection> kept;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (fds[i + 2].revents != 0)
        answer(std::move(connections_[i].socket));
      else if (now < connections_[i].deadline)
        kept.push_back(std::move(connections_[i]));
    }
    connections_ = std::move(kept);
  }

  void accept_waiting(clock::time_point now) {
    while (connections_.size() < options_.connections_max) {
      base::unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN) accept_again_ = now + base::accept_pause;
        return;
      }
      if (wire::check_peer_user(socket.get()))
        connections_.push_back({std::move(socket), now + options_.idle});
    }
  }

  /// One request, one reply; what is not a request gets none. Descriptors a client sends are closed on the
  /// way.
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
    // A reply that cannot be sent at once is dropped with its connection: the client sees that and reports
    // it.
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
  const base::unique_fd listener_;
  const base::wake_event wake_;
  std::atomic<bool> stopping_{false};
  offer_book<offered> offers_{options_.offers_max};
  std::mutex mutex_;
  std::function<void(std::unique_ptr<doorbell>)> connected_; // guarded by mutex_
  std::vector<connection> connections_;                      // the thread's own, as is the next
  clock::time_point accept_again_{};
  std::thread thread_;
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
  auto wake = base::wake_event::create();
  if (!wake) return tl::unexpected(wake.error());
  auto made = std::make_unique<loop>(options, std::move(address), std::move(*listener), std::move(*wake));
  try {
    made->start();
  } catch (const std::system_error& e) {
    return base::fail_errno("cannot start the segment server's thread", e.code().value());
  }
  return std::unique_ptr<segment_server>(new segment_server(std::move(made)));
}

const std::string& segment_server::address() const { return loop_->address(); }

result<segment_id> segment_server::offer(const segment& what) { return loop_->offer(what); }

void segment_server::withdraw(segment_id id) { loop_->withdraw(id); }

void segment_server::on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) {
  loop_->on_doorbell(std::move(connected));
}

} // namespace dlrun::transport
