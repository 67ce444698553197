#include "actors/agent/beats/beat_exchange.hpp"

#include "actors/agent/beats/own_time.hpp"
#include "actors/common/clock.hpp"
#include "base/ipv4_address.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"

#include <atomic>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <optional>
#include <sys/socket.h>
#include <unordered_map>

namespace dlrun::agent {

using protocol::duration;
using protocol::time_point;

namespace {

/// A flood is read in portions, so that our own beats go out between them.
constexpr int datagrams_a_turn = 256;

/// IPv4, as all between hosts.
result<sockaddr_in> parse(std::string_view text) {
  if (const auto address = base::parse_ipv4_address(text)) return *address;
  return fail(error_code::bad_usage, fmt::format("'{}' is not IPv4 NUMBER:PORT", text));
}

struct open_socket {
  base::unique_fd socket;
  std::string address;
};

result<open_socket> open_on(const std::string& host, std::uint16_t port) {
  auto address = parse(fmt::format("{}:{}", host, port));
  if (!address) return tl::unexpected(address.error());
  open_socket made{base::unique_fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)}, {}};
  if (!made.socket) return base::fail_errno("cannot create a UDP socket");
  const int fd = made.socket.get();
  // Ahead of tensors, where a router or a network card has more than one queue.
  const int urgent = IPTOS_LOWDELAY;
  ::setsockopt(fd, IPPROTO_IP, IP_TOS, &urgent, sizeof urgent);
  socklen_t size = sizeof(sockaddr_in);
  auto* const there = reinterpret_cast<sockaddr*>(&*address);
  if (::bind(fd, there, size) != 0) {
    auto why =
        base::fail_errno(fmt::format("cannot take a UDP port of {} (is it an address of this host?)", host));
    why.value().code = error_code::bad_usage;
    return why;
  }
  if (::getsockname(fd, there, &size) != 0) return base::fail_errno("cannot read the port of a UDP socket");
  made.address = base::to_string(*address);
  return made;
}

} // namespace

class beat_exchange::loop final : base::polled_service {
public:
  loop(const beat_options& options, open_socket opened)
      : options_{options}
      , socket_{std::move(opened.socket)}
      , address_{std::move(opened.address)} {}

  result<void> start() { return thread_.start("dlrun-beats", "the exchange of beats", *this); }
  const std::string& address() const { return address_; }
  void note_turn() { turn_ = common::now(); }

  result<void> watch(const beat_peer& peer, told tell) {
    std::optional<sockaddr_in> at;
    if (!peer.address.empty()) {
      const auto address = parse(peer.address);
      if (!address) return tl::unexpected(address.error());
      at = *address;
    }
    const std::scoped_lock lock{mutex_};
    const auto found = peers_.find(peer.name);
    if (found != peers_.end() && found->second.peer.boot == peer.boot) return {};
    // It believes no beat that is older than those that called it, and may answer them.
    const auto call = calls_.extract(peer.name);
    auto watch = call.empty() ? new_watch() : call.mapped().watch;
    watch.meet(peer.boot);
    peers_.insert_or_assign(peer.name, watched{.peer = peer,
                                               .at = at,
                                               .earlier = {},
                                               .watch = watch,
                                               .tell = std::move(tell),
                                               .told_at = peer.address});
    note_boots();
    return {};
  }
  void forget(const std::string& name) {
    const std::scoped_lock lock{mutex_};
    peers_.erase(name);
    calls_.erase(name);
    note_boots();
  }
  result<void> call(const beat_peer& peer, time_point until) {
    const auto at = parse(peer.address);
    if (!at) return tl::unexpected(at.error());
    const std::scoped_lock lock{mutex_};
    calls_.insert_or_assign(peer.name,
                            called{.keys = peer.keys, .at = *at, .watch = new_watch(), .until = until});
    return {};
  }

private:
  struct watched {
    beat_peer peer;
    std::optional<sockaddr_in> at;      ///< nothing: it is not known yet
    std::optional<sockaddr_in> earlier; ///< where a beat came from that is late: of an earlier root
    peer_watch watch;
    told tell;
    sight seen = sight::unproven; ///< as it was told, as is the next
    std::string told_at{};        ///< of one whose address was given
  };
  struct called {
    beat_keys keys;
    sockaddr_in at;
    peer_watch watch; ///< which hears nothing
    time_point until;
  };
  struct news {
    told tell;
    sighting what;
  };

  /// Of a peer of which no start is known yet.
  peer_watch new_watch() const { return {options_.rules, options_.boot, 0, options_.last_sequence}; }
  std::chrono::steady_clock::time_point watch(std::vector<pollfd>& fds) override;
  void serve(std::span<const pollfd> fds) override;
  void note_boots();
  void note_own_pause(time_point at);
  void read_all(time_point at, std::vector<news>& changes);
  void take(std::span<const std::byte> datagram, const sockaddr_in& from, time_point at,
            std::vector<news>& changes);
  static void note_earlier(watched& peer, const sockaddr_in& from);
  void send_all(time_point at);
  void send(const beat& what, const beat_keys& keys, const sockaddr_in& to) const;
  static void look_at(watched& one, time_point at, std::vector<news>& changes);

  const beat_options options_;
  const base::unique_fd socket_;
  const std::string address_;
  std::atomic<time_point> turn_{}; ///< of the actor; none yet: the epoch

  // of the thread
  own_time own_time_{options_.rules.period};
  time_point next_beat_ = common::now();
  time_point due_ = next_beat_; ///< until when it waits at the latest

  std::mutex mutex_;
  std::map<std::string, watched> peers_; ///< guarded by mutex_, as are the next
  /// Of peers_, by what they say of themselves: beats of hundreds come, 20 a second of each.
  std::unordered_multimap<std::uint64_t, watched*> by_boot_;
  std::map<std::string, called> calls_;
  base::service_loop thread_; ///< last: it uses the members above
};

std::chrono::steady_clock::time_point beat_exchange::loop::watch(std::vector<pollfd>& fds) {
  fds.push_back({socket_.get(), POLLIN, 0});
  return due_;
}

/// A peer of which a beat comes is looked at at once, all of them each period and when one of them
/// may have become silent.
void beat_exchange::loop::serve(std::span<const pollfd>) {
  const auto at = common::now();
  std::vector<news> changes;
  {
    const std::scoped_lock lock{mutex_};
    note_own_pause(at);
    read_all(at, changes);
    if (at >= due_) {
      send_all(at);
      due_ = next_beat_;
      for (auto& [name, one] : peers_) {
        look_at(one, at, changes);
        due_ = std::min(due_, one.watch.silent_at(at));
      }
    }
  }
  for (const auto& one : changes) one.tell(one.what);
}

void beat_exchange::loop::note_boots() {
  by_boot_.clear();
  for (auto& [name, one] : peers_) by_boot_.emplace(one.peer.boot, &one);
}

void beat_exchange::loop::note_own_pause(time_point at) {
  const auto paused = own_time_.woke(due_, at);
  if (paused == duration{0}) return;
  for (auto& [name, one] : peers_) one.watch.on_own_pause(paused);
  for (auto& [name, one] : calls_) one.watch.on_own_pause(paused);
}

void beat_exchange::loop::read_all(time_point at, std::vector<news>& changes) {
  std::array<std::byte, beat_bytes + 1> datagram{}; // one more, so that a longer one is seen to be
  for (int i = 0; i < datagrams_a_turn; ++i) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const auto got = ::recvfrom(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                                reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return;
    take(std::span{datagram}.first(static_cast<std::size_t>(got)), from, at, changes);
  }
}

void beat_exchange::loop::take(std::span<const std::byte> datagram, const sockaddr_in& from, time_point at,
                               std::vector<news>& changes) {
  const auto boot = claimed_boot(datagram);
  if (!boot) return;
  const auto [first, last] = by_boot_.equal_range(*boot);
  for (auto one = first; one != last; ++one) {
    auto& peer = *one->second;
    const auto heard = opened(datagram, peer.peer.keys.receive);
    if (!heard) continue;
    if (!peer.watch.on_beat(*heard, at)) {
      if (peer.watch.is_late(*heard)) note_earlier(peer, from);
      continue;
    }
    peer.at = from;
    look_at(peer, at, changes);
  }
}

/// It learns from the next beat that another root was followed (R39). A root keeps no such place:
/// its hosts do not move.
void beat_exchange::loop::note_earlier(watched& peer, const sockaddr_in& from) {
  const bool is_elsewhere =
      peer.at && (peer.at->sin_addr.s_addr != from.sin_addr.s_addr || peer.at->sin_port != from.sin_port);
  if (is_elsewhere && !peer.peer.address.empty()) peer.earlier = from;
}

void beat_exchange::loop::send_all(time_point at) {
  if (at < next_beat_) return;
  const auto period = options_.rules.period;
  next_beat_ = std::max(next_beat_ + period, at + period / 2);
  const auto turn = turn_.load();
  const auto turn_age = turn == time_point{} ? duration{0} : own_time_.turn_age(turn, at);
  for (auto& [name, one] : peers_) {
    if (!one.at) continue;
    const auto said = one.watch.next(turn_age, at);
    send(said, one.peer.keys, *one.at);
    if (const auto earlier = std::exchange(one.earlier, std::nullopt)) send(said, one.peer.keys, *earlier);
  }
  std::erase_if(calls_, [&](const auto& one) { return at >= one.second.until; });
  for (auto& [name, one] : calls_) send(one.watch.next(turn_age, at), one.keys, one.at);
}

/// What cannot be sent is lost, as on the way.
void beat_exchange::loop::send(const beat& what, const beat_keys& keys, const sockaddr_in& to) const {
  const auto datagram = sealed(what, keys.send);
  [[maybe_unused]] const auto sent =
      ::sendto(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

void beat_exchange::loop::look_at(watched& one, time_point at, std::vector<news>& changes) {
  const auto seen = one.watch.look(at);
  auto place = one.peer.address.empty() ? std::string{} : base::to_string(*one.at);
  const bool is_new = seen != one.seen || place != one.told_at;
  one.seen = seen;
  one.told_at = std::move(place);
  if (is_new) changes.push_back({one.tell, {seen, one.watch.silence(at), one.told_at}});
}

beat_exchange::beat_exchange(std::unique_ptr<loop> loop)
    : loop_{std::move(loop)} {}
beat_exchange::~beat_exchange() = default;

result<std::unique_ptr<beat_exchange>> beat_exchange::start(const beat_options& options) {
  auto opened = open_on(options.address, options.port);
  if (!opened) return tl::unexpected(opened.error());
  auto made = std::make_unique<loop>(options, std::move(*opened));
  if (auto started = made->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<beat_exchange>{new beat_exchange(std::move(made))};
}

const std::string& beat_exchange::address() const { return loop_->address(); }
result<void> beat_exchange::watch(const beat_peer& peer, told tell) {
  return loop_->watch(peer, std::move(tell));
}
void beat_exchange::forget(const std::string& name) { loop_->forget(name); }
result<void> beat_exchange::call(const beat_peer& peer, time_point until) { return loop_->call(peer, until); }
void beat_exchange::note_turn() { loop_->note_turn(); }

} // namespace dlrun::agent
