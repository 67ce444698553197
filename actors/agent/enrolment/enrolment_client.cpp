#include "actors/agent/enrolment/enrolment_client.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "base/os_error.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

namespace dlrun::agent {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = std::size_t{64} << 10;
constexpr auto last_words_patience = std::chrono::seconds(2);

/// @returns whether it came about
bool wait_for(int socket, short events, clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    if (left <= 0) return false;
    pollfd watched{socket, events, 0};
    const int found = ::poll(&watched, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

result<sockaddr_in> find_root(const std::string& root) {
  const auto colon = root.rfind(':');
  addrinfo wanted{};
  wanted.ai_family = AF_INET; // as all between hosts
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (colon == std::string::npos || colon == 0 ||
      ::getaddrinfo(root.substr(0, colon).c_str(), root.substr(colon + 1).c_str(), &wanted, &found) != 0)
    return fail(
        error_code::bad_usage,
        fmt::format("--join {}: expected HOST:PORT, an IPv4 address or a name of one, and the port that "
                    "'join.listen' names in the list of hosts, as in 10.0.0.1:7700",
                    root));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{found, ::freeaddrinfo};
  sockaddr_in address{};
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), sizeof address,
              reinterpret_cast<char*>(&address));
  return address;
}

result<base::unique_fd> connect_to_root(const enrolment_wish& wish) {
  const auto address = find_root(wish.root);
  if (!address) return tl::unexpected(address.error());
  base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket) return base::fail_errno("cannot create a TCP socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 &&
      errno != EINPROGRESS)
    return base::fail_errno(fmt::format("cannot connect to {}", wish.root));
  if (!wait_for(socket.get(), POLLOUT, clock::now() + wish.connect_deadline))
    return fail(error_code::timed_out,
                fmt::format("{} does not answer: is that where the root listens, and does a firewall let it "
                            "pass?",
                            wish.root));
  int why = 0;
  socklen_t size = sizeof why;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
  if (why != 0)
    return base::fail_errno(
        fmt::format("cannot connect to {} (is the job there, and does its list of hosts have 'join:'?)",
                    wish.root),
        why);
  return socket;
}

std::string own_number(int socket) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  char text[INET_ADDRSTRLEN] = "";
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size) == 0)
    ::inet_ntop(AF_INET, &here.sin_addr, text, sizeof text);
  return text;
}

/// Bytes to the root and from it, until a time.
class told_root {
public:
  told_root(int socket, security::tls_session& session, clock::time_point until)
      : socket_{socket}
      , session_{session}
      , until_{until} {}

  result<void> send_wire() {
    while (!session_.wire().empty()) {
      const auto wire = session_.wire();
      const auto sent = ::send(socket_, wire.data(), wire.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        session_.sent(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EINTR) {
        if (!wait_for(socket_, POLLOUT, until_))
          return fail(error_code::timed_out, "the root takes nothing more");
      } else {
        return base::fail_errno("the connection to the root is lost");
      }
    }
    return {};
  }

  /// Takes what comes next.
  result<void> hear(std::vector<std::byte>& plain) {
    if (auto sent = send_wire(); !sent) return sent;
    if (!wait_for(socket_, POLLIN, until_)) return fail(error_code::timed_out, "the root does not answer");
    const auto got = ::recv(socket_, piece_.data(), piece_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0) return base::fail_errno("the connection to the root is lost");
    if (got == 0) return fail(error_code::system, "the root has closed the connection");
    auto fed = session_.feed(std::span{piece_}.first(static_cast<std::size_t>(got)), plain);
    if (!fed) static_cast<void>(send_wire()); // the alert that says why
    return fed;
  }

private:
  int socket_;
  security::tls_session& session_;
  clock::time_point until_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(piece_bytes);
};

/// Who is at the other end is whom the token names.
result<void> shake_hands(told_root& root, const security::tls_session& session) {
  std::vector<std::byte> nothing;
  while (!session.is_established()) {
    auto heard = root.hear(nothing);
    if (!heard && heard.error().code == error_code::fenced)
      return fail(
          error_code::bad_usage,
          fmt::format("who answers there is not the root that the token is of: {}; the job may have "
                      "been started again since: 'dlrun token RUN', where the root runs, makes another",
                      heard.error().message));
    if (!heard) return heard;
  }
  return {};
}

result<void> ask_to_join(const enrolment_wish& wish, int socket, security::tls_session& session) {
  auto request = wish.as;
  request.set_secret(wish.token.secret.reveal());
  if (request.address().empty()) request.set_address(own_number(socket));
  const security::secret_text message{written_message(join_word, wish.version, request.SerializeAsString())};
  return session.write(std::as_bytes(std::span{message.reveal()}));
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The whole answer, a message with its line. @returns the root's words as bad_usage when it
/// refuses.
result<std::vector<std::byte>> hear_answer(const enrolment_wish& wish, told_root& root) {
  const auto no_answer =
      fail(error_code::protocol, "what the root answers is no answer to a request to join");
  std::vector<std::byte> heard;
  for (;;) {
    const auto text = text_of(heard);
    const auto end = text.find('\n');
    const auto head = end == text.npos ? std::nullopt : parse_join_head(text.substr(0, end));
    if (head ? head->bytes > wish.bundle_bytes_max : end != text.npos || text.size() > join_line_max)
      return no_answer;
    if (head && heard.size() >= end + 1 + head->bytes) {
      if (head->word == bundle_word) return heard;
      if (head->word != refused_word) return no_answer;
      return fail(error_code::bad_usage,
                  fmt::format("the root at {} refuses: {}", wish.root, text.substr(end + 1, head->bytes)));
    }
    if (auto more = root.hear(heard); !more)
      return fail(more.error().code, fmt::format("{}: {}", wish.root, more.error().message));
  }
}

} // namespace

void enrolment_line::tell_end(const std::string& why) {
  const auto text = std::string_view{why}.substr(0, join_reason_bytes_max);
  if (!session_.write(std::as_bytes(std::span{text}))) return;
  session_.close();
  static_cast<void>(told_root{socket_.get(), session_, clock::now() + last_words_patience}.send_wire());
}

result<enrolled_host> enrol(const enrolment_wish& wish) {
  auto socket = connect_to_root(wish);
  if (!socket) return tl::unexpected(socket.error());
  auto context = security::tls_context::make_pinned(wish.token.pin, "agent");
  if (!context) return tl::unexpected(context.error());
  auto session = security::tls_session::start(**context, security::tls_session::side::client);
  if (!session) return tl::unexpected(session.error());
  told_root root{socket->get(), *session, clock::now() + wish.answer_deadline};
  if (auto known = shake_hands(root, *session); !known)
    return fail(known.error().code, fmt::format("{}: {}", wish.root, known.error().message));
  if (auto asked = ask_to_join(wish, socket->get(), *session); !asked) return tl::unexpected(asked.error());
  const auto answer = hear_answer(wish, root);
  if (!answer) return tl::unexpected(answer.error());
  auto bundle = make_bootstrap(text_of(*answer));
  if (!bundle) return tl::unexpected(bundle.error());
  return enrolled_host{std::move(*bundle), enrolment_line{std::move(*socket), std::move(*session)}};
}

} // namespace dlrun::agent
