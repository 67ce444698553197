#include "actors/link/tls_stream.hpp"

#include "base/os_error.hpp"

#include <array>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace dlrun::link {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 10;
/// Of ciphertext that TCP has not taken.
constexpr std::size_t unsent_bytes_max = std::size_t{128} << 10;

bool is_for_later(ssize_t done) { return done < 0 && (errno == EAGAIN || errno == EINTR); }

} // namespace

tls_stream::tls_stream(base::unique_fd socket, security::tls_session session, time_point deadline)
    : wire_{std::move(socket)}
    , session_{std::move(session)}
    , deadline_{deadline} {}

short tls_stream::wire_events() const {
  short events = 0;
  if (!wire_ended_ && to_inside_.empty()) events |= POLLIN;
  if (!session_.wire().empty()) events |= POLLOUT;
  return events;
}

short tls_stream::inside_events() const {
  if (!inside_) return 0;
  short events = 0;
  if (!inside_ended_ && session_.wire().size() < unsent_bytes_max) events |= POLLIN;
  if (!to_inside_.empty()) events |= POLLOUT;
  return events;
}

void tls_stream::serve(short wire, short inside, time_point now) {
  if ((wire & (POLLIN | POLLHUP | POLLERR)) != 0 && !wire_ended_ && to_inside_.empty()) hear_wire();
  if (state_ != state::over && (inside & (POLLIN | POLLHUP | POLLERR)) != 0 && !inside_ended_) hear_inside();
  if (state_ != state::over) tell_inside();
  if (state_ != state::over) tell_wire();
  if (state_ == state::over) return;
  if (wire_ended_ && to_inside_.empty())
    return end({error_code::system, "the peer has closed the connection"});
  if (inside_ended_ && session_.wire().empty()) return end({error_code::interrupted, "closed here"});
  if (state_ == state::begins && now >= deadline_)
    end({error_code::timed_out, "the peer has not shown who it is in time"});
}

void tls_stream::end(error why) {
  state_ = state::over;
  why_ = std::move(why);
}

// ---- from the peer

void tls_stream::hear_wire() {
  std::array<std::byte, piece_bytes> piece;
  const auto got = ::recv(wire_.get(), piece.data(), piece.size(), 0);
  if (is_for_later(got)) return;
  if (got < 0) return end({error_code::system, std::generic_category().message(errno)});
  if (got == 0) {
    wire_ended_ = true;
    return;
  }
  const auto fed = session_.feed(std::span{piece}.first(static_cast<std::size_t>(got)), to_inside_);
  if (!fed) {
    tell_wire(); // the alert that says why; what is not taken at once is not waited for
    return end(fed.error());
  }
  if (session_.is_closed()) wire_ended_ = true;
  if (state_ == state::begins && session_.is_established()) open();
}

void tls_stream::open() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return end({error_code::system, "no more sockets: " + std::generic_category().message(errno)});
  inside_.reset(ends[0]);
  local_end_.reset(ends[1]);
  state_ = state::open;
}

void tls_stream::tell_inside() {
  if (!inside_ || to_inside_.empty()) return;
  const auto sent = ::send(inside_.get(), to_inside_.data(), to_inside_.size(), MSG_NOSIGNAL);
  if (is_for_later(sent)) return;
  if (sent < 0) {
    to_inside_.clear();
    inside_ended_ = true;
    return session_.close();
  }
  to_inside_.erase(to_inside_.begin(), to_inside_.begin() + sent);
}

// ---- to the peer

void tls_stream::hear_inside() {
  std::array<std::byte, piece_bytes> piece;
  const auto got = ::recv(inside_.get(), piece.data(), piece.size(), 0);
  if (is_for_later(got)) return;
  if (got <= 0) {
    inside_ended_ = true;
    return session_.close();
  }
  if (const auto written = session_.write(std::span{piece}.first(static_cast<std::size_t>(got))); !written)
    end(written.error());
}

void tls_stream::tell_wire() {
  while (!session_.wire().empty()) {
    const auto wire = session_.wire();
    const auto sent = ::send(wire_.get(), wire.data(), wire.size(), MSG_NOSIGNAL);
    if (is_for_later(sent) || (sent < 0 && errno == ENOTCONN)) return; // a client that still connects
    if (sent < 0) return end({error_code::system, std::generic_category().message(errno)});
    session_.sent(static_cast<std::size_t>(sent));
  }
}

} // namespace dlrun::link
