#include "actors/link/gatekeeper.hpp"

#include "actors/link/tls_carrier.hpp"
#include "base/call_queue.hpp"
#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/exchange_wire.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace dlrun::link {
namespace {

using clock = std::chrono::steady_clock;

/// Pause before a connect is repeated to a process whose backlog is full.
constexpr std::chrono::milliseconds connect_pause{2};
constexpr int backlog = 512;
/// Not answered yet; more are refused.
constexpr std::size_t dials_max = 4096;

result<base::unique_fd> make_socket() {
  base::unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket) return base::fail_errno("cannot create a Unix socket");
  return socket;
}

result<base::unique_fd> listen_on(const std::string& name) {
  const auto address = transport::wire::make_abstract_address(name);
  if (!address) return tl::unexpected(address.error());
  auto socket = make_socket();
  if (!socket) return socket;
  if (::bind(socket->get(), address->get(), address->length) != 0 || ::listen(socket->get(), backlog) != 0)
    return base::fail_errno("cannot listen on an abstract Unix socket");
  return socket;
}

/// @returns an empty descriptor when the backlog there is full.
result<base::unique_fd> connect_to(const std::string& name, const peer_id& wanted) {
  const auto address = transport::wire::make_abstract_address(name);
  if (!address) return tl::unexpected(address.error());
  auto socket = make_socket();
  if (!socket) return socket;
  if (::connect(socket->get(), address->get(), address->length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return base::unique_fd();
    return base::fail_errno(fmt::format("cannot reach {} (has its process ended?)", to_string(wanted)));
  }
  // Before the token leaves: a stranger who took the name must not learn it.
  if (auto ok = transport::wire::check_peer_user(socket->get()); !ok) return tl::unexpected(ok.error());
  return socket;
}

/// A greeting is shorter than any socket's buffer: what cannot be sent at once never will be.
template <class Greeting>
bool send_greeting(int socket, const Greeting& said) {
  return ::send(socket, &said, sizeof said, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof said);
}

/// What has come of one greeting.
class incoming {
public:
  enum class state : std::uint8_t { waits, whole, lost };

  /// Reads what is there, and no more of it than a little beyond a greeting of `bytes`.
  state read(int socket, std::size_t bytes) {
    char buffer[512];
    const auto got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return state::waits;
    if (got <= 0) return state::lost;
    bytes_.insert(bytes_.end(), buffer, buffer + got);
    return bytes_.size() < bytes ? state::waits : state::whole;
  }

  /// The greeting; what follows it stays.
  template <class Greeting>
  Greeting take() {
    Greeting said;
    std::memcpy(&said, bytes_.data(), sizeof said);
    bytes_.erase(bytes_.begin(), bytes_.begin() + sizeof said);
    return said;
  }

  std::vector<char> rest() && { return std::move(bytes_); }

private:
  std::vector<char> bytes_;
};

struct stranger {
  base::unique_fd socket;
  clock::time_point deadline;
  std::optional<security::certificate_name> shown{}; ///< of one on another host
  incoming words{};
};

/// Whether the certificate is one of that role, in whatever start.
bool speaks_for(const security::certificate_name& shown, const peer_id& who) {
  return shown.role == protocol::to_string(who.role.kind) && shown.index == who.role.index;
}

/// "NAME@NUMBER:PORT": the Unix socket, and where other hosts reach the process.
struct split_address {
  std::string name;
  std::string remote; ///< "" of a process of a job of one host
};
split_address split(const std::string& address) {
  const auto at = address.find('@');
  if (at == std::string::npos) return {address, {}};
  return {address.substr(0, at), address.substr(at + 1)};
}

struct dial_call {
  std::string address;
  peer_id wanted;
  gatekeeper::dialled done;
};

struct dialling {
  dial_call call;
  clock::time_point deadline;
  std::uint64_t number = 0;
  bool is_carried = false;  ///< the TLS carrier connects it
  base::unique_fd socket{}; ///< empty until connected
  clock::time_point connect_at{};
  incoming words{};
};

/// What the TLS carrier has connected, for the gatekeeper's thread.
struct carried_call {
  std::optional<std::uint64_t> dial; ///< nothing: it was accepted
  result<carried_socket> how;
};

} // namespace

class gatekeeper::loop final : base::polled_service {
public:
  loop(const gatekeeper_options& options, events told, std::string address, base::unique_fd listening)
      : options_{options}
      , told_{std::move(told)}
      , address_{std::move(address)}
      , listener_{std::move(listening)} {}

  result<void> start() {
    if (auto ok = thread_.start("dlrun-gate", "the gatekeeper", *this); !ok || !options_.remote) return ok;
    auto carrier = tls_carrier::start({.host = options_.remote->host,
                                       .port = options_.remote->port,
                                       .identity = options_.remote->identity,
                                       .handshake_deadline = options_.greeting_deadline,
                                       .strangers_max = options_.strangers_max},
                                      [this](carried_socket one) {
                                        hand_over({std::nullopt, std::move(one)});
                                      });
    if (!carrier) return tl::unexpected(carrier.error());
    address_ += "@" + (*carrier)->address();
    carrier_ = std::move(*carrier);
    return {};
  }
  /// The thread uses the carrier, and the carrier wakes the thread.
  ~loop() override { thread_.stop(); }

  const std::string& address() const { return address_; }

  void dial(dial_call call) {
    auto done = call.done;
    if (const auto added = calls_.add(std::move(call)); !added) return done(tl::unexpected(added.error()));
    thread_.wake();
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    for (auto& call : calls_.take())
      dials_.push_back(
          {.call = std::move(call), .deadline = now + options_.greeting_deadline, .number = ++last_dial_});
    take_carried(now);
    connect_waiting(now);
    auto next = listener_.watch(fds, has_room(), now);
    for (const auto& one : strangers_) {
      fds.push_back({one.socket.get(), POLLIN, 0});
      next = std::min(next, one.deadline);
    }
    for (const auto& one : dials_) {
      fds.push_back({one.socket.get(), POLLIN, 0});
      next = std::min({next, one.deadline, one.socket || one.is_carried ? one.deadline : one.connect_at});
    }
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    const auto of_dials = fds.subspan(1 + strangers_.size());
    hear_strangers(fds.subspan(1), now);
    hear_dialled(of_dials, now);
    if (fds[0].revents == 0) return;
    listener_.accept_waiting(now, [&](base::unique_fd socket) {
      if (transport::wire::check_peer_user(socket.get()))
        strangers_.push_back({std::move(socket), now + options_.greeting_deadline});
      return has_room();
    });
  }

  void end() override {
    calls_.close();
    const error stopped{error_code::interrupted, "the control link was stopped"};
    for (const auto& one : dials_) one.call.done(tl::unexpected(stopped));
    for (const auto& call : calls_.take()) call.done(tl::unexpected(stopped));
  }

  bool has_room() const { return strangers_.size() < options_.strangers_max; }

  // ---- other hosts

  /// On the carrier's thread.
  void hand_over(carried_call call) {
    {
      const std::scoped_lock lock{carried_mutex_};
      carried_.push_back(std::move(call));
    }
    thread_.wake();
  }

  void take_carried(clock::time_point now) {
    std::vector<carried_call> all;
    {
      const std::scoped_lock lock{carried_mutex_};
      all.swap(carried_);
    }
    for (auto& one : all) {
      if (one.dial)
        connected(*one.dial, std::move(one.how));
      else if (one.how && has_room())
        strangers_.push_back({std::move(one.how->socket), now + options_.greeting_deadline, one.how->peer});
    }
  }

  void connected(std::uint64_t number, result<carried_socket> how) {
    const auto found = std::ranges::find(dials_, number, &dialling::number);
    if (found == dials_.end()) return; // the deadline was earlier
    if (how && !speaks_for(how->peer, found->call.wanted))
      how =
          fail(error_code::fenced, fmt::format("{} is wanted, and {} is there", to_string(found->call.wanted),
                                               security::describe(how->peer)));
    if (!how) {
      finish(found->call, tl::unexpected(how.error()));
      dials_.erase(found);
      return;
    }
    found->socket = std::move(how->socket);
    send_greeting(found->socket.get(), make_hello(options_.token, options_.self, found->call.wanted));
  }

  /// @returns whether the carrier connects it.
  bool carry(dialling& one) {
    const auto to = split(one.call.address);
    if (!carrier_ || to.remote.empty() || carrier_->is_here(to.remote)) return false;
    one.is_carried = true;
    carrier_->dial(to.remote, [this, number = one.number](result<carried_socket> how) {
      hand_over({number, std::move(how)});
    });
    return true;
  }

  void hear_strangers(std::span<const pollfd> fds, clock::time_point now) {
    std::vector<stranger> kept;
    for (std::size_t i = 0; i < strangers_.size(); ++i) {
      auto& one = strangers_[i];
      auto state = incoming::state::waits;
      if (fds[i].revents != 0) state = one.words.read(one.socket.get(), sizeof(hello));
      if (state == incoming::state::whole)
        answer(std::move(one));
      else if (state == incoming::state::waits && now < one.deadline)
        kept.push_back(std::move(one));
    }
    strangers_ = std::move(kept);
  }

  /// Who says nothing that makes sense gets no answer.
  void answer(stranger one) const {
    const auto said = one.words.take<hello>();
    const auto from = dialler_of(said);
    const auto to = wanted_of(said);
    if (said.magic != hello_magic || !from || !to) return;
    if (one.shown && !speaks_for(*one.shown, *from)) return;
    welcome reply;
    if (said.version != link_version)
      reply.status = greeting_status::other_version;
    else if (!(said.token == options_.token))
      reply.status = greeting_status::other_run;
    else if (!told_.is_here(*to))
      reply.status = greeting_status::not_here;
    if (!send_greeting(one.socket.get(), reply) || reply.status != greeting_status::welcome) return;
    told_.accepted({std::move(one.socket), *from, std::move(one.words).rest()});
  }

  void connect_waiting(clock::time_point now) {
    std::vector<dialling> kept;
    for (auto& one : dials_) {
      if (!one.socket && !one.is_carried && one.connect_at <= now && !carry(one)) {
        auto socket = connect_to(split(one.call.address).name, one.call.wanted);
        if (!socket) {
          finish(one.call, tl::unexpected(socket.error()));
          continue;
        }
        one.socket = std::move(*socket);
        one.connect_at = now + connect_pause;
        if (one.socket)
          send_greeting(one.socket.get(), make_hello(options_.token, options_.self, one.call.wanted));
      }
      kept.push_back(std::move(one));
    }
    dials_ = std::move(kept);
  }

  void hear_dialled(std::span<const pollfd> fds, clock::time_point now) {
    std::vector<dialling> kept;
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      auto& one = dials_[i];
      auto state = incoming::state::waits;
      if (one.socket && fds[i].revents != 0) state = one.words.read(one.socket.get(), sizeof(welcome));
      if (state == incoming::state::whole)
        welcomed(one);
      else if (state == incoming::state::lost)
        finish(one.call, fail(error_code::role_lost,
                              fmt::format("{} has closed the connection", to_string(one.call.wanted))));
      else if (now >= one.deadline)
        finish(one.call,
               fail(error_code::timed_out, fmt::format("{} does not answer", to_string(one.call.wanted))));
      else
        kept.push_back(std::move(one));
    }
    dials_ = std::move(kept);
  }

  void welcomed(dialling& one) {
    if (auto ok = check_welcome(one.words.take<welcome>(), one.call.wanted); !ok)
      return finish(one.call, tl::unexpected(ok.error()));
    finish(one.call, open_socket{std::move(one.socket), one.call.wanted, std::move(one.words).rest()});
  }

  void finish(const dial_call& call, result<open_socket> how) {
    calls_.count_answered();
    call.done(std::move(how));
  }

  const gatekeeper_options options_;
  const events told_;
  std::string address_;     // constant once started
  base::listener listener_; // the thread's own, as are the next two
  std::vector<stranger> strangers_;
  std::vector<dialling> dials_;
  std::uint64_t last_dial_ = 0;
  std::mutex carried_mutex_;
  std::vector<carried_call> carried_; // guarded by carried_mutex_
  base::call_queue<dial_call> calls_{"the control link", "connections are being made already", dials_max};
  base::service_loop thread_;
  std::unique_ptr<tls_carrier> carrier_; // null without remote_access
};

gatekeeper::gatekeeper(std::unique_ptr<loop> loop)
    : loop_{std::move(loop)} {}
gatekeeper::~gatekeeper() = default;

result<std::unique_ptr<gatekeeper>> gatekeeper::start(const gatekeeper_options& options, events told) {
  const auto name = transport::run_token::random();
  if (!name) return tl::unexpected(name.error());
  auto address = "dlrun-" + name->to_hex();
  auto listening = listen_on(address);
  if (!listening) return tl::unexpected(listening.error());
  auto made = std::make_unique<loop>(options, std::move(told), std::move(address), std::move(*listening));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<gatekeeper>{new gatekeeper(std::move(made))};
}

const std::string& gatekeeper::address() const { return loop_->address(); }

void gatekeeper::dial(std::string address, const peer_id& wanted, dialled done) {
  loop_->dial({std::move(address), wanted, std::move(done)});
}

} // namespace dlrun::link
