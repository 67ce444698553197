#include "actors/agent/enrolment/enrolment_server.hpp"

#include "actors/agent/enrolment/enrolment_visit.hpp"
#include "actors/agent/enrolment/token_book.hpp"
#include "actors/common/clock.hpp"
#include "base/ipv4_address.hpp"
#include "base/listener.hpp"
#include "base/os_error.hpp"
#include "base/random.hpp"
#include "base/service_loop.hpp"
#include "base/sha256.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace dlrun::agent {
namespace {

using clock = std::chrono::steady_clock;
using visit_state = enrolment_visit::state;

constexpr int door_backlog = 512;

std::string address_of_peer(int socket) {
  sockaddr_in there{};
  socklen_t size = sizeof there;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &size) != 0) return "an unknown address";
  return base::to_string(there);
}

/// A host that vanishes while it is being let in is noticed.
void watch_for_loss(int socket) {
  const int on = 1, patience_ms = 10'000, after_s = 5;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, sizeof after_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
}

struct known_visit {
  std::uint64_t number = 0;
  enrolment_visit visit;
  bootstrap::JoinRequest who{};
  std::string token{};                 ///< digest of the secret, once it was taken
  bool is_known = false;               ///< by that, or by the key
  std::optional<admission> admitted{}; ///< until it is let go
};

struct decision {
  std::uint64_t visit = 0;
  result<admission> what;
};

/// What other threads want of the server's; it may outlive the server.
struct enrolment_inbox {
  std::mutex mutex;
  std::vector<decision> decisions;
  std::vector<std::string> let_go;
  base::service_loop* thread = nullptr; ///< null once the server has gone

  template <class Where, class What>
  void put(Where where, What what) {
    const std::scoped_lock lock{mutex};
    if (thread == nullptr) return;
    (this->*where).push_back(std::move(what));
    thread->wake();
  }
};

} // namespace

result<enrolment_listener> listen_for_enrolments(const std::string& address) {
  auto where = base::parse_ipv4_address(address);
  if (!where) return fail(error_code::bad_usage, fmt::format("'{}' is no IPv4 number with a port", address));
  base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket) return base::fail_errno("cannot create a TCP socket");
  const int on = 1; // the connections of an earlier run may still be closing
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof *where;
  auto* const raw = reinterpret_cast<sockaddr*>(&*where);
  if (::bind(socket.get(), raw, size) != 0 || ::listen(socket.get(), door_backlog) != 0) {
    const bool in_use = errno == EADDRINUSE;
    auto why = base::fail_errno(fmt::format("cannot listen at {} for hosts that join", address));
    why.value().message += in_use ? "; another run may do so: name another port, or 0 for a free one"
                                  : "; name an address of this host, and a port that its user may have";
    why.value().code = error_code::bad_usage;
    return why;
  }
  if (::getsockname(socket.get(), raw, &size) != 0) return base::fail_errno("cannot read a TCP port");
  return enrolment_listener{std::move(socket), base::to_string(*where)};
}

class enrolment_server::loop final : base::polled_service {
public:
  loop(enrolment_listener listening, const enrolment_options& options, enrolment_events events)
      : options_{options}
      , events_{std::move(events)}
      , address_{std::move(listening.address)}
      , listener_{std::move(listening.socket)} {}
  ~loop() override {
    const std::scoped_lock lock{inbox_->mutex};
    inbox_->thread = nullptr;
  }

  result<void> start() {
    const std::scoped_lock lock{inbox_->mutex}; // its thread waits for this: no decision comes before
    auto begun = thread_.start("dlrun-enrol", "the door for hosts that join", *this);
    if (begun) inbox_->thread = &thread_;
    return begun;
  }
  const std::string& address() const { return address_; }

  result<security::secret_text> make_token(std::chrono::seconds lifetime) {
    std::string secret(join_secret_bytes, '\0');
    if (auto made = base::fill_random(std::as_writable_bytes(std::span{secret})); !made)
      return tl::unexpected(made.error());
    const join_token token{security::secret_text{std::move(secret)}, options_.pin};
    const std::scoped_lock lock{tokens_mutex_};
    if (auto kept = tokens_.add(base::sha256_of(token.secret.reveal()), lifetime, common::now()); !kept)
      return tl::unexpected(kept.error());
    return to_text(token);
  }

  void let_go(const std::string& host) { inbox_->put(&enrolment_inbox::let_go, host); }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    const auto now = clock::now();
    take_inbox(now);
    auto next = tell_of_strangers(now);
    next = std::min(next, listener_.watch(fds, has_room(), now));
    for (const auto& one : visits_) {
      fds.push_back(one.visit.watch());
      next = std::min(next, one.visit.deadline());
    }
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    std::size_t place = 1;
    for (auto& one : visits_) {
      one.visit.serve(fds[place++].revents, now);
      if (auto request = one.visit.take_request()) judge(one, std::move(*request), now);
    }
    drop_over();
    if (fds[0].revents == 0) return;
    listener_.accept_waiting(now, [&](base::unique_fd socket) {
      begin(std::move(socket), now);
      return has_room();
    });
  }

  void begin(base::unique_fd socket, clock::time_point now) {
    auto session = security::tls_session::start(*options_.door, security::tls_session::side::server);
    if (!session) return;
    watch_for_loss(socket.get());
    auto from = address_of_peer(socket.get());
    visits_.push_back({++visits_made_, enrolment_visit{std::move(socket), std::move(*session), options_.key,
                                                       std::move(from), now + options_.request_deadline}});
  }

  /// Who was refused counts until it has gone.
  bool has_room() const {
    const auto strangers = std::ranges::count(visits_, false, &known_visit::is_known);
    return static_cast<std::size_t>(strangers) < options_.strangers_max;
  }

  // ---- who is it, and may it join?

  void judge(known_visit& one, enrolment_visit::request request, clock::time_point now) {
    one.who = std::move(request.what);
    if (!request.is_proven) {
      auto digest = base::sha256_of(one.who.secret());
      one.who.clear_secret();
      if (const auto good = take_token(digest); !good) {
        note_stranger(one.visit.from(), good.error().message);
        return one.visit.refuse(options_.version, good.error().message, false,
                                now + options_.request_deadline);
      }
      one.token = std::move(digest);
    }
    one.is_known = true;
    if (request.version != options_.version)
      return refuse(one,
                    {error_code::bad_usage,
                     fmt::format("the job is run by dlrun {}, and host {} has dlrun {}: install the same "
                                 "build on all hosts",
                                 options_.version, one.who.name(), request.version)});
    events_.admit(one.who, [inbox = inbox_, visit = one.number](result<admission> what) {
      inbox->put(&enrolment_inbox::decisions, decision{visit, std::move(what)});
    });
  }

  result<void> take_token(const std::string& digest) {
    const std::scoped_lock lock{tokens_mutex_};
    return tokens_.take(digest, common::now());
  }

  /// Who has the key and may try again will: that is told at the other end alone.
  void refuse(known_visit& one, const error& why) {
    const bool has_token = !one.token.empty(), may_retry = why.code == error_code::in_use;
    if (has_token) {
      const std::scoped_lock lock{tokens_mutex_};
      tokens_.give_back(one.token);
    }
    if (has_token || !may_retry)
      events_.refused(
          fmt::format("host {} at {} was not let in: {}", one.who.name(), one.visit.from(), why.message));
    one.visit.refuse(options_.version, why.message + (has_token ? " (the token can still be used)" : ""),
                     may_retry, clock::now() + options_.request_deadline);
  }

  void take_inbox(clock::time_point now) {
    std::vector<decision> decisions;
    std::vector<std::string> let_go;
    {
      const std::scoped_lock lock{inbox_->mutex};
      decisions.swap(inbox_->decisions);
      let_go.swap(inbox_->let_go);
    }
    for (auto& one : decisions) on_decision(one, now);
    for (const auto& host : let_go)
      for (auto& one : visits_)
        if (one.admitted && one.admitted->host == host) {
          one.admitted.reset();
          one.visit.end();
        }
    drop_over();
  }

  void on_decision(decision& made, clock::time_point now) {
    const auto found = std::ranges::find(visits_, made.visit, &known_visit::number);
    if (found == visits_.end()) {
      if (made.what) events_.ended(*made.what, "it hung up");
      return;
    }
    if (!made.what) return refuse(*found, made.what.error());
    auto bundle = events_.bundle(found->who, *made.what);
    if (!bundle) {
      events_.ended(*made.what, bundle.error().message);
      return refuse(*found, bundle.error());
    }
    found->admitted = *made.what;
    found->visit.give(std::move(*bundle), now + options_.given_deadline);
  }

  void drop_over() {
    for (const auto& one : visits_)
      if (one.visit.now() == visit_state::over) on_over(one);
    std::erase_if(visits_, [](const auto& one) { return one.visit.now() == visit_state::over; });
  }

  void on_over(const known_visit& one) {
    const auto& said = one.visit.last_words();
    const auto& problem = one.visit.problem();
    if (one.admitted)
      events_.ended(*one.admitted, !problem.empty() ? problem : said.empty() ? "it hung up" : said);
    else if (!one.is_known && !problem.empty())
      note_stranger(one.visit.from(), problem);
  }

  // ---- those who have no good token: whoever reaches the port can be one

  void note_stranger(const std::string& from, const std::string& why) {
    ++strangers_;
    last_stranger_ = fmt::format("{} was not let in: {}", from, why);
  }

  /// @returns when to look again
  clock::time_point tell_of_strangers(clock::time_point now) {
    if (strangers_ == 0) return clock::time_point::max();
    if (now < tell_strangers_from_) return tell_strangers_from_;
    const auto more = std::exchange(strangers_, 0) - 1;
    events_.refused(more == 0 ? last_stranger_ : fmt::format("{}; and {} others", last_stranger_, more));
    tell_strangers_from_ = now + options_.strangers_told_each;
    return clock::time_point::max();
  }

  const enrolment_options options_;
  const enrolment_events events_;
  const std::string address_;
  const std::shared_ptr<enrolment_inbox> inbox_ = std::make_shared<enrolment_inbox>();
  std::mutex tokens_mutex_;
  token_book tokens_;       ///< guarded by tokens_mutex_
  base::listener listener_; // the thread's own, as are the next
  std::list<known_visit> visits_;
  std::uint64_t visits_made_ = 0;
  std::uint64_t strangers_ = 0; ///< since they were told of
  std::string last_stranger_;
  clock::time_point tell_strangers_from_{};
  base::service_loop thread_;
};

enrolment_server::enrolment_server(std::unique_ptr<loop> loop)
    : loop_{std::move(loop)} {}
enrolment_server::~enrolment_server() = default;

result<std::unique_ptr<enrolment_server>> enrolment_server::start(enrolment_listener listener,
                                                                  const enrolment_options& options,
                                                                  enrolment_events events) {
  auto made = std::make_unique<loop>(std::move(listener), options, std::move(events));
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<enrolment_server>{new enrolment_server(std::move(made))};
}

const std::string& enrolment_server::address() const { return loop_->address(); }
result<security::secret_text> enrolment_server::make_token(std::chrono::seconds lifetime) {
  return loop_->make_token(lifetime);
}
void enrolment_server::let_go(const std::string& host) { loop_->let_go(host); }

} // namespace dlrun::agent
