#include "actors/link/gatekeeper.hpp"

#include "base/call_queue.hpp"
#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/exchange_wire.hpp"

#include <cstring>

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
  incoming words{};
};

struct dial_call {
  std::string address;
  peer_id wanted;
  gatekeeper::dialled done;
};

struct dialling {
  dial_call call;
  clock::time_point deadline;
  base::unique_fd socket{}; ///< empty until connected
  clock::time_point connect_at{};
  incoming words{};
};

} // namespace

class gatekeeper::loop final : base::polled_service {
public:
  loop(const gatekeeper_options& options, events told, std::string address, base::unique_fd listening)
      : options_{options}
      , told_{std::move(told)}
      , address_{std::move(address)}
      , listener_{std::move(listening)} {}

  result<void> start() { return thread_.start("dlrun-gate", "the gatekeeper", *this); }
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
      dials_.push_back({.call = std::move(call), .deadline = now + options_.greeting_deadline});
    connect_waiting(now);
    auto next = listener_.pause_end(now);
    fds.push_back(listener_.watched(has_room(), now));
    for (const auto& one : strangers_) {
      fds.push_back({one.socket.get(), POLLIN, 0});
      next = std::min(next, one.deadline);
    }
    for (const auto& one : dials_) {
      fds.push_back({one.socket.get(), POLLIN, 0});
      next = std::min({next, one.deadline, one.socket ? one.deadline : one.connect_at});
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
      if (!one.socket && one.connect_at <= now) {
        auto socket = connect_to(one.call.address, one.call.wanted);
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
  const std::string address_;
  base::listener listener_; // the thread's own, as are the next two
  std::vector<stranger> strangers_;
  std::vector<dialling> dials_;
  base::call_queue<dial_call> calls_{"the control link", "connections are being made already", dials_max};
  base::service_loop thread_;
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
