#include "transport/tcp_server.hpp"

#include "base/os_error.hpp"
#include "base/service_thread.hpp"
#include "base/wake_event.hpp"
#include "transport/offer_book.hpp"
#include "transport/tcp_connection.hpp"

#include <atomic>

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

class tcp_server::loop {
public:
  loop(tcp_server_options options, listening listener, base::wake_event wake)
      : options_(options)
      , listener_(std::move(listener.socket))
      , identity_(listener.at.server)
      , address_(tcp::to_string(listener.at))
      , wake_(std::move(wake)) {}

  ~loop() {
    stopping_ = true;
    wake_.notify();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    thread_ = base::start_service_thread("dlrun-tensors", [this] { run(); });
  }

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
  void run() {
    std::vector<pollfd> fds;
    while (!stopping_) {
      const auto before = clock::now();
      const bool accepting = connections_.size() < options_.connections_max && before >= accept_again_;
      fds.assign({{wake_.fd(), POLLIN, 0}, {accepting ? listener_.get() : -1, POLLIN, 0}});
      for (const auto& c : connections_) fds.push_back({c.socket(), c.wants(), 0});
      base::poll_until(fds, next_deadline(before));
      if (fds[0].revents != 0) wake_.drain();
      serve(fds, clock::now());
      if (fds[1].revents != 0) accept_waiting(clock::now());
    }
  }

  clock::time_point next_deadline(clock::time_point now) const {
    auto next = clock::time_point::max();
    if (accept_again_ > now) next = accept_again_;
    for (const auto& c : connections_) next = std::min(next, c.deadline());
    return next;
  }

  /// `fds` lists the connections from index 2 on.
  void serve(const std::vector<pollfd>& fds, clock::time_point now) {
    const auto find = [this](segment_id id) { return offers_.find(id); };
    std::size_t at = 2;
    std::erase_if(connections_, [&](tcp::connection& c) {
      if (fds[at++].revents != 0) return !c.go_on(find, now);
      if (now < c.deadline()) return false;
      c.reset();
      return true;
    });
  }

  void accept_waiting(clock::time_point now) {
    while (connections_.size() < options_.connections_max) {
      base::unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN) accept_again_ = now + base::accept_pause;
        return;
      }
      const auto mine = run_token::random();
      if (!mine) continue;
      tcp::set_no_delay(socket.get());
      connections_.emplace_back(std::move(socket), options_.token, identity_, mine->bytes, options_.idle,
                                now);
    }
  }

  const tcp_server_options options_;
  const base::unique_fd listener_;
  const tcp::nonce identity_;
  const std::string address_;
  const base::wake_event wake_;
  std::atomic<bool> stopping_{false};
  offer_book<segment> offers_{options_.offers_max};
  std::vector<tcp::connection> connections_; // the thread's own, as is the next
  clock::time_point accept_again_{};
  std::thread thread_;
};

tcp_server::tcp_server(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
tcp_server::~tcp_server() = default;

result<std::unique_ptr<tcp_server>> tcp_server::start(tcp_server_options options) {
  auto listener = listen_on_loopback();
  if (!listener) return tl::unexpected(listener.error());
  auto wake = base::wake_event::create();
  if (!wake) return tl::unexpected(wake.error());
  auto made = std::make_unique<loop>(options, std::move(*listener), std::move(*wake));
  try {
    made->start();
  } catch (const std::system_error& e) {
    return base::fail_errno("cannot start the tensor server's thread", e.code().value());
  }
  return std::unique_ptr<tcp_server>(new tcp_server(std::move(made)));
}

const std::string& tcp_server::address() const { return loop_->address(); }

result<segment_id> tcp_server::offer(const segment& what) { return loop_->offer(what); }

void tcp_server::withdraw(segment_id id) { loop_->withdraw(id); }

} // namespace dlrun::transport
