#include "transport/tcp_stream.hpp"

#include "base/os_error.hpp"
#include "transport/tcp_wire.hpp"

#include <algorithm>
#include <sys/socket.h>

namespace dlrun::transport::tcp {
namespace {

/// Encrypted at a stretch, and received at a stretch: large enough for the kernel, small enough to
/// stay in a core's cache on the way through.
constexpr std::size_t stretch_bytes = std::size_t{128} << 10;
/// The same for who has not shown yet who it is.
constexpr std::size_t stranger_bytes = std::size_t{4} << 10;

} // namespace

void stream::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

// ---- what comes in

result<std::optional<std::size_t>> stream::receive(std::span<std::byte> into) {
  if (!session_) return receive_plain(into);
  for (;;) {
    const auto got = decrypt(into);
    if (!got) return refuse(got.error());
    may_have_more_ = *got == into.size();
    if (*got > 0) return *got;
    if (const auto sent = flush(); !sent) return tl::unexpected(sent.error()); // of the handshake
    if (session_->is_closed()) return 0;
    in_.resize(session_->is_established() ? stretch_bytes : stranger_bytes);
    auto came = receive_plain(in_);
    if (!came || !*came || **came == 0) return came;
    in_begin_ = 0;
    in_end_ = **came;
  }
}

/// Of what has been received already.
result<std::size_t> stream::decrypt(std::span<std::byte> into) {
  auto wire = std::span<const std::byte>(in_).subspan(in_begin_, in_end_ - in_begin_);
  auto got = session_->read(wire, into);
  in_begin_ = in_end_ - wire.size();
  return got;
}

result<std::optional<std::size_t>> stream::receive_plain(std::span<std::byte> into) const {
  for (;;) {
    const auto got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (would_block(errno)) return std::nullopt;
    return base::fail_errno("the connection is lost");
  }
}

/// The peer is told why, if the socket takes that at once.
tl::unexpected<error> stream::refuse(error why) {
  static_cast<void>(flush());
  return tl::unexpected(std::move(why));
}

/// What the peer said before it hung up tells more than that it has.
tl::unexpected<error> stream::lost(error why) {
  std::vector<std::byte> last(stranger_bytes);
  if (const auto came = receive_plain(last); came && came->value_or(0) > 0) {
    std::vector<std::byte> said;
    if (const auto heard = session_->feed(std::span(last).first(**came), said); !heard)
      return tl::unexpected(heard.error());
  }
  return tl::unexpected(std::move(why));
}

// ---- what goes out

result<std::optional<std::size_t>> stream::send(std::span<const std::byte> from) {
  if (!session_) return send_plain(from);
  if (!session_->is_established()) return std::nullopt;
  if (session_->wire().size() >= stretch_bytes) {
    if (const auto sent = flush(); !sent) return tl::unexpected(sent.error());
    if (session_->wire().size() >= stretch_bytes) return std::nullopt;
  }
  const auto some = from.first(std::min(from.size(), stretch_bytes));
  if (const auto written = session_->write(some); !written) return refuse(written.error());
  return some.size();
}

result<bool> stream::flush() {
  bool moved = false;
  while (has_unsent()) {
    const auto sent = send_plain(session_->wire());
    if (!sent) return lost(sent.error());
    if (!*sent) return moved;
    session_->sent(**sent);
    moved = true;
  }
  return moved;
}

result<std::optional<std::size_t>> stream::send_plain(std::span<const std::byte> from) const {
  for (;;) {
    const auto sent = ::send(socket_.get(), from.data(), from.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (would_block(errno)) return std::nullopt;
    return base::fail_errno("the connection is lost");
  }
}

} // namespace dlrun::transport::tcp
