#include "transport/tcp_link.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/socket.h>

namespace dlrun::transport::tcp {
namespace {

/// Received at a stretch, before others have their turn.
constexpr std::size_t receive_turn_bytes = std::size_t{8} << 20;
/// So many bytes, or the end of an answer, and the answers get on. Smaller: who sends byte by byte
/// is waited for longer. Larger: a link with many transfers and few bytes a second is taken for
/// dead.
constexpr std::size_t getting_on_bytes = std::size_t{64} << 10;

template <class Message>
std::span<std::byte> bytes_of(Message& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

} // namespace

link::link(std::string address, const run_token& token, const nonce& mine, const security::tls_context* tls)
    : address_(std::move(address))
    , token_(token) {
  greeting_.client = mine;
  begun_ = begin_connect(tls);
}

result<void> link::begin_connect(const security::tls_context* tls) {
  const auto where = parse_address(address_);
  if (!where) return tl::unexpected(where.error());
  greeting_.server = where->server;
  auto socket = make_socket();
  if (!socket) return tl::unexpected(socket.error());
  const int fd = socket->get();
  std::optional<security::tls_session> session;
  if (where->is_tls) {
    if (tls == nullptr) return broken(error_code::fenced, "wants TLS, and this process has no certificate");
    auto made = security::tls_session::start(*tls, security::tls_session::side::client);
    if (!made) return tl::unexpected(made.error());
    session = std::move(*made);
    set_watched(fd);
  }
  stream_ = stream(std::move(*socket), std::move(session));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&where->at), sizeof where->at) != 0 &&
      errno != EINPROGRESS)
    return base::fail_errno(
        fmt::format("cannot reach the tensor server {} (has its process ended?)", address_));
  return {};
}

short link::wants() const {
  const bool has_more = stream_.has_unsent() || (sent_ < out_.size() && stream_.is_open());
  return stage_ == stage::connecting || has_more ? POLLIN | POLLOUT : POLLIN;
}

link::time_point link::deadline() const {
  auto first = time_point::max();
  for (const auto& one : asked_) first = std::min(first, due(one));
  return first;
}

link::time_point link::due(const wanted& one) const {
  return moved_ ? std::max(one.deadline, *moved_ + one.patience) : one.deadline;
}

std::deque<wanted> link::take_all() {
  for (auto& one : asked_) one.deadline = due(one);
  return std::exchange(asked_, {});
}

void link::want(wanted what) { asked_.push_back(std::move(what)); }

result<void> link::go_on(copy_buffers& memory, std::vector<finished>& over, time_point now) {
  now_ = now;
  if (!begun_) return begun_;
  if (stage_ == stage::connecting)
    if (auto done = finish_connect(); !done) return done;
  if (auto done = send_waiting(); !done) return done;
  if (stage_ == stage::connecting) return {};
  if (auto done = receive(memory, over); !done) return done;
  return send_waiting(); // what the challenge was answered with
}

/// Called when the socket is ready, and before.
result<void> link::finish_connect() {
  pollfd ready{stream_.socket(), POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1) return {};
  int failed = 0;
  socklen_t length = sizeof failed;
  if (::getsockopt(stream_.socket(), SOL_SOCKET, SO_ERROR, &failed, &length) != 0) failed = errno;
  if (failed != 0)
    return base::fail_errno(
        fmt::format("cannot reach the tensor server {} (has its process ended?)", address_), failed);
  say(&greeting_, sizeof greeting_);
  stage_ = stage::greeted;
  return {};
}

// ---- what goes out

void link::say(const void* data, std::size_t size) { out_.append(static_cast<const char*>(data), size); }

result<void> link::send_waiting() {
  for (; stage_ == stage::ready && requested_ < asked_.size(); ++requested_) {
    const auto& what = asked_[requested_];
    request one;
    one.segment = what.id.value;
    one.bytes = what.bytes;
    one.part = what.part;
    say(&one, sizeof one);
  }
  while (sent_ < out_.size()) {
    const auto sent = stream_.send(std::as_bytes(std::span(out_)).subspan(sent_));
    if (!sent) return lost(sent.error());
    if (!*sent) break;
    sent_ += **sent;
  }
  if (const auto flushed = stream_.flush(); !flushed) return lost(flushed.error());
  if (sent_ < out_.size()) return {};
  out_.clear();
  sent_ = 0;
  return {};
}

// ---- what comes in

/// Where the next bytes belong.
std::span<std::byte> link::room() {
  if (stage_ == stage::greeted) return bytes_of(challenge_).subspan(received_);
  const auto piece = [&](const segment_piece& one) {
    return copy_->memory.subspan(one.offset, one.bytes).subspan(received_);
  };
  switch (next_) {
  case expected::reply: return bytes_of(reply_).subspan(received_);
  case expected::first_mark: return piece(asked_.front().part.marks[0]);
  case expected::second_mark: return piece(asked_.front().part.marks[1]);
  case expected::values: return piece(asked_.front().part.values);
  case expected::trailer: return bytes_of(trailer_).subspan(received_);
  }
  return {};
}

result<void> link::receive(copy_buffers& memory, std::vector<finished>& over) {
  for (std::size_t turn = 0; turn < receive_turn_bytes;) {
    const auto into = room();
    if (into.empty()) {
      received_ = 0;
      if (auto taken = take(memory, over); !taken) return taken;
      continue;
    }
    const auto got = stream_.receive(into);
    if (!got) return lost(got.error());
    if (!*got) return {};
    if (**got == 0) // before the proof: that is what a server does to a stranger
      return stage_ == stage::ready ? broken(error_code::system, "has closed the connection")
                                    : broken(error_code::fenced, "does not know us: it is another one");
    received_ += **got;
    turn += **got;
    if (stage_ == stage::ready) note_received(**got);
  }
  return {};
}

void link::note_received(std::size_t bytes) {
  since_moved_ += bytes;
  if (since_moved_ < getting_on_bytes) return;
  since_moved_ = 0;
  moved_ = now_;
}

/// Of what was expected all is there.
result<void> link::take(copy_buffers& memory, std::vector<finished>& over) {
  if (stage_ == stage::greeted) return take_challenge();
  switch (next_) {
  case expected::reply: return take_reply(memory, over);
  case expected::first_mark: next_ = expected::second_mark; return {};
  case expected::second_mark: next_ = expected::values; return {};
  case expected::values: next_ = expected::trailer; return {};
  case expected::trailer: return take_trailer(over);
  }
  return {};
}

result<void> link::take_challenge() {
  if (challenge_.magic != challenge_magic || challenge_.version != format_version)
    return broken(error_code::protocol, "did not greet as one");
  if (!same(challenge_.knows, prove(token_, "server", greeting_, challenge_.server)))
    return broken(error_code::fenced, "belongs to another run");
  const answer mine{prove(token_, "client", greeting_, challenge_.server)};
  say(&mine, sizeof mine);
  stage_ = stage::ready;
  return {};
}

result<void> link::take_reply(copy_buffers& memory, std::vector<finished>& over) {
  if (requested_ == 0 || reply_.magic != reply_magic || reply_.segment != asked_.front().id.value)
    return broken(error_code::protocol, "answered what nobody asked");
  const auto& what = asked_.front();
  switch (reply_.status) {
  case reply_status::here: break;
  case reply_status::unknown_segment:
    finish_first(
        fail(error_code::role_lost,
             fmt::format("the tensor server {} does not offer segment {} any more", address_, what.id)),
        over);
    return {};
  case reply_status::other_size:
  case reply_status::no_such_part:
    finish_first(
        fail(error_code::protocol,
             fmt::format("segment {} of the tensor server {} is not one of {} bytes, or has no such part",
                         what.id, address_, what.bytes)),
        over);
    return {};
  default: return broken(error_code::protocol, "sent an unknown status");
  }
  auto lent = what.into ? result<copy_buffer>{*what.into} : memory.lend(what.bytes);
  if (!lent) return tl::unexpected(lent.error());
  copy_ = std::move(*lent);
  next_ = expected::first_mark;
  return {};
}

result<void> link::take_trailer(std::vector<finished>& over) {
  if (trailer_.magic != trailer_magic) return broken(error_code::protocol, "sent no end of an answer");
  next_ = expected::reply;
  auto copy = std::exchange(copy_, std::nullopt);
  if (trailer_.unchanged == 1)
    finish_first(segment::of_copy(copy->memory, std::move(copy->owner)), over);
  else
    finish_first(fail(error_code::role_lost, fmt::format("segment {} of the tensor server {} was written to "
                                                         "while it was read",
                                                         asked_.front().id, address_)),
                 over);
  return {};
}

void link::finish_first(result<segment> outcome, std::vector<finished>& over) {
  over.push_back({std::move(asked_.front()), std::move(outcome)});
  asked_.pop_front();
  --requested_;
  moved_ = now_;
}

tl::unexpected<error> link::broken(error_code code, std::string_view what) const {
  return fail(code, fmt::format("the tensor server {} {}", address_, what));
}

tl::unexpected<error> link::lost(const error& why) const {
  return fail(why.code, fmt::format("the tensor server {}: {}", address_, why.message));
}

} // namespace dlrun::transport::tcp
