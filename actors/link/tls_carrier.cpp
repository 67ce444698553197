#include "actors/link/tls_carrier.hpp"

#include "actors/link/tls_stream.hpp"
#include "base/call_queue.hpp"
#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/ready_set.hpp"
#include "base/service_loop.hpp"

#include <algorithm>
#include <list>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <sys/socket.h>

namespace dlrun::link {
namespace {

using clock = std::chrono::steady_clock;

constexpr int tls_backlog = 512;
constexpr std::size_t tls_dials_max = 4096;
/// Of what was sent and is not acknowledged; and of silence, in which the peer's host is asked for
/// a sign each second.
constexpr int patience_ms = 3000;
constexpr int probe_after_s = 1;
constexpr int probes_max = 2;

struct socket_address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// From numbers only: nobody is asked for a name.
result<socket_address> parse(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0)
    return fail(error_code::bad_usage, fmt::format("'{}:{}' is no address of a process", host, port));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{found, ::freeaddrinfo};
  socket_address made;
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen,
              reinterpret_cast<char*>(&made.storage));
  made.length = found->ai_addrlen;
  return made;
}

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

result<socket_address> parse(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos)
    return fail(error_code::bad_usage, fmt::format("'{}' is no address of a process", address));
  return parse(address.substr(0, colon), address.substr(colon + 1));
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// A host that is cut off is noticed although nothing says so.
void keep_watch(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, patience_ms);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, probe_after_s);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, probe_after_s);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, probes_max);
}

result<base::unique_fd> make_socket(const socket_address& address) {
  base::unique_fd socket{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket) return base::fail_errno("cannot create a TCP socket");
  return socket;
}

struct listening_socket {
  base::unique_fd socket;
  std::string address;
};

result<listening_socket> listen_on_number(const std::string& host, std::uint16_t port) {
  const auto address = parse(host, std::to_string(port));
  if (!address) return tl::unexpected(address.error());
  auto socket = make_socket(*address);
  if (!socket) return tl::unexpected(socket.error());
  // Connections of a process before this one, which had the port, may still be ending; both have to
  // allow it. A free port is one that nobody has, not even in this way.
  const int again = 1;
  if (port != 0) ::setsockopt(socket->get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  if (::bind(socket->get(), address->get(), address->length) != 0) {
    auto why = base::fail_errno(
        port == 0
            ? fmt::format("cannot listen on {} (is it an address of this host?)", host)
            : fmt::format("cannot listen on port {} of {} (is it an address of this host?)", port, host));
    why.value().code = error_code::bad_usage;
    return why;
  }
  ::setsockopt(socket->get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  socket_address bound;
  bound.length = sizeof bound.storage;
  if (::listen(socket->get(), tls_backlog) != 0 ||
      ::getsockname(socket->get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return base::fail_errno(fmt::format("cannot listen on {}", host));
  char taken[NI_MAXSERV] = {};
  ::getnameinfo(bound.get(), bound.length, nullptr, 0, taken, sizeof taken, NI_NUMERICSERV);
  return listening_socket{std::move(*socket), fmt::format("{}:{}", host, taken)};
}

result<base::unique_fd> connect_to(const std::string& text) {
  const auto address = parse(text);
  if (!address) return tl::unexpected(address.error());
  auto socket = make_socket(*address);
  if (!socket) return socket;
  keep_watch(socket->get());
  if (::connect(socket->get(), address->get(), address->length) != 0 && errno != EINPROGRESS)
    return base::fail_errno(fmt::format("cannot connect to {}", text));
  return socket;
}

struct carried_dial {
  std::string address;
  tls_carrier::dialled done;
};

/// A stream, and what is to be done when its peer is known. It stays where it is: its descriptors
/// are watched.
struct carried_stream {
  carried_stream(tls_stream carried, std::optional<carried_dial> dialled_by)
      : stream{std::move(carried)}
      , call{std::move(dialled_by)} {}
  carried_stream(const carried_stream&) = delete;
  carried_stream& operator=(const carried_stream&) = delete;

  bool is_over() const { return stream.now() == tls_stream::state::over; }

  tls_stream stream;
  std::optional<carried_dial> call; ///< of one that was dialled here
  bool is_known = false;
  base::ready_set::watched wire{.owner = this};
  base::ready_set::watched inside{.owner = this};
};

} // namespace

class tls_carrier::loop final : base::polled_service {
public:
  loop(const tls_carrier_options& options, accepted take, listening_socket listening, base::ready_set ready)
      : options_{options}
      , take_{std::move(take)}
      , address_{std::move(listening.address)}
      , listener_{std::move(listening.socket)}
      , ready_{std::move(ready)} {}

  result<void> start() { return thread_.start("dlrun-tls", "the TLS carrier", *this); }
  const std::string& address() const { return address_; }

  void dial(carried_dial call) {
    auto done = call.done;
    if (const auto added = calls_.add(std::move(call)); !added) return done(tl::unexpected(added.error()));
    thread_.wake();
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    for (auto& call : calls_.take()) connect(std::move(call), now);
    auto next = listener_.watch(fds, has_room(), now);
    fds.push_back({ready_.fd(), POLLIN, 0});
    for (const auto& one : strangers_) next = std::min(next, one.stream.deadline());
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    if (fds[1].revents != 0) serve_ready(now);
    for (auto& one : strangers_)
      if (now >= one.stream.deadline()) serve(one, now);
    let_go();
    if (fds[0].revents == 0) return;
    listener_.accept_waiting(now, [&](base::unique_fd socket) {
      keep_watch(socket.get());
      add(std::move(socket), security::tls_session::side::server, now, std::nullopt);
      return has_room();
    });
  }

  void serve_ready(clock::time_point now) {
    const auto ready = ready_.take();
    for (auto* const place : ready) {
      auto& one = *static_cast<carried_stream*>(place->owner);
      if ((one.wire.ready | one.inside.ready) != 0) serve(one, now); // both in one go
    }
  }

  void serve(carried_stream& one, clock::time_point now) {
    const auto wire = std::exchange(one.wire.ready, short{0});
    const auto inside = std::exchange(one.inside.ready, short{0});
    if (one.is_over()) return;
    one.stream.serve(wire, inside, now);
    if (!one.is_over()) watch(one);
    look_at(one);
    any_is_over_ = any_is_over_ || one.is_over();
  }

  /// What it waits for now.
  void watch(carried_stream& one) {
    auto done = ready_.watch(one.stream.wire(), one.stream.wire_events(), one.wire);
    if (done && one.stream.inside() >= 0)
      done = ready_.watch(one.stream.inside(), one.stream.inside_events(), one.inside);
    if (!done) one.stream.end(done.error());
  }

  /// Not left to the closing of its descriptors: a process that is being started has them, too,
  /// until its program begins.
  void watch_no_more(carried_stream& one) {
    [[maybe_unused]] const auto wire = ready_.watch(one.stream.wire(), 0, one.wire);
    [[maybe_unused]] const auto inside = ready_.watch(one.stream.inside(), 0, one.inside);
  }

  /// Those whose peer has become known are no strangers any more; those that are over go.
  void let_go() {
    for (auto one = strangers_.begin(); one != strangers_.end();) {
      const auto next = std::next(one);
      if (one->is_known) known_.splice(known_.end(), strangers_, one);
      one = next;
    }
    if (!std::exchange(any_is_over_, false)) return;
    for (auto* streams : {&strangers_, &known_})
      streams->remove_if([this](auto& one) {
        if (one.is_over()) watch_no_more(one);
        return one.is_over();
      });
  }

  void end() override {
    calls_.close();
    const error stopped{error_code::interrupted, "the control link was stopped"};
    for (const auto& one : strangers_)
      if (one.call) one.call->done(tl::unexpected(stopped));
    for (const auto& call : calls_.take()) call.done(tl::unexpected(stopped));
    strangers_.clear();
    known_.clear();
  }

  bool has_room() const {
    const auto strangers = std::ranges::count_if(strangers_, [](const auto& one) { return !one.call; });
    return static_cast<std::size_t>(strangers) < options_.strangers_max;
  }

  void connect(carried_dial call, clock::time_point now) {
    auto socket = connect_to(call.address);
    if (!socket) return finish(call, tl::unexpected(socket.error()));
    add(std::move(*socket), security::tls_session::side::client, now, std::move(call));
  }

  void add(base::unique_fd socket, security::tls_session::side side, clock::time_point now,
           std::optional<carried_dial> call) {
    auto session = security::tls_session::start(*options_.identity, side);
    if (!session) {
      if (call) finish(*call, tl::unexpected(session.error()));
      return;
    }
    auto& made = strangers_.emplace_back(
        tls_stream{std::move(socket), std::move(*session), now + options_.handshake_deadline},
        std::move(call));
    watch(made);
    if (!made.is_over()) return;
    look_at(made);
    strangers_.pop_back();
  }

  /// Hands it out when its peer has become known.
  void look_at(carried_stream& one) {
    if (one.is_known || one.stream.now() == tls_stream::state::begins) return;
    if (one.is_over()) {
      if (one.call)
        finish(*one.call, fail(one.stream.why().code,
                               fmt::format("{}: {}", one.call->address, one.stream.why().message)));
      return;
    }
    one.is_known = true;
    carried_socket made{one.stream.take_local_end(), one.stream.peer()};
    if (one.call)
      finish(*one.call, std::move(made));
    else
      take_(std::move(made));
  }

  void finish(const carried_dial& call, result<carried_socket> how) {
    calls_.count_answered();
    call.done(std::move(how));
  }

  const tls_carrier_options options_;
  const accepted take_;
  const std::string address_;
  base::listener listener_; // the thread's own, as are the next
  base::ready_set ready_;
  std::list<carried_stream> strangers_, known_; ///< by whether their peer has shown who it is
  bool any_is_over_ = false;
  base::call_queue<carried_dial> calls_{"the TLS carrier", "connections are being made already",
                                        tls_dials_max};
  base::service_loop thread_;
};

tls_carrier::tls_carrier(std::unique_ptr<loop> loop)
    : loop_{std::move(loop)} {}
tls_carrier::~tls_carrier() = default;

result<std::unique_ptr<tls_carrier>> tls_carrier::start(const tls_carrier_options& options, accepted take) {
  auto listening = listen_on_number(options.host, options.port);
  if (!listening) return tl::unexpected(listening.error());
  auto ready = base::ready_set::create();
  if (!ready) return tl::unexpected(ready.error());
  auto made = std::make_unique<loop>(options, std::move(take), std::move(*listening), std::move(*ready));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<tls_carrier>{new tls_carrier(std::move(made))};
}

const std::string& tls_carrier::address() const { return loop_->address(); }

bool tls_carrier::is_here(const std::string& address) const {
  return host_of(address) == host_of(loop_->address());
}

void tls_carrier::dial(const std::string& address, dialled done) { loop_->dial({address, std::move(done)}); }

} // namespace dlrun::link
