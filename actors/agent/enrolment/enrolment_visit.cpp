#include "actors/agent/enrolment/enrolment_visit.hpp"

#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <span>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace dlrun::agent {
namespace {

constexpr std::size_t heard_piece_bytes = 4096;
constexpr std::size_t told_piece_bytes = std::size_t{64} << 10;

constexpr auto no_request = "what it says is no request to join";

bool is_for_later(ssize_t done) { return done < 0 && (errno == EAGAIN || errno == EINTR); }

/// Does a host say such a message?
bool is_of_host(const join_head& head) {
  if (head.word == join_word) return head.bytes <= join_request_bytes_max;
  return head.word == key_word && head.version == key_version && head.bytes == join_proof_bytes;
}

} // namespace

enrolment_visit::enrolment_visit(base::unique_fd socket, security::tls_session session,
                                 std::shared_ptr<const join_key> key, std::string from, time_point deadline)
    : socket_{std::move(socket)}
    , session_{std::move(session)}
    , key_{std::move(key)}
    , from_{std::move(from)}
    , deadline_{deadline} {}

std::optional<enrolment_visit::request> enrolment_visit::take_request() {
  return std::exchange(request_, std::nullopt);
}

void enrolment_visit::refuse(std::string_view version, std::string_view why, bool may_retry,
                             time_point deadline) {
  state_ = state::leaves;
  deadline_ = deadline;
  say(written_message(may_retry ? not_now_word : refused_word, version,
                      why.substr(0, join_reason_bytes_max)));
}

void enrolment_visit::give(std::string message, time_point deadline) {
  state_ = state::given;
  deadline_ = deadline;
  say(std::move(message));
}

void enrolment_visit::end() {
  state_ = state::over;
  session_.close();
  tell(); // what is not taken at once is not waited for
}

void enrolment_visit::fail_with(std::string why) {
  state_ = state::over;
  if (problem_.empty()) problem_ = std::move(why);
}

pollfd enrolment_visit::watch() const {
  short events = has_ended_ ? 0 : POLLIN;
  if (!session_.wire().empty()) events |= POLLOUT;
  return {events == 0 ? -1 : socket_.get(), events, 0};
}

void enrolment_visit::serve(short events, time_point now) {
  if (state_ != state::over && (events & (POLLIN | POLLHUP | POLLERR)) != 0 && !has_ended_) hear();
  if (state_ != state::over) tell();
  if (state_ != state::over && now >= deadline_) on_silence();
}

void enrolment_visit::on_silence() {
  switch (state_) {
  case state::asks: return fail_with("it has not said in time what it wants");
  case state::given: return fail_with("it has not taken in time what it was given");
  default: state_ = state::over;
  }
}

// ---- from the host

void enrolment_visit::hear() {
  std::array<std::byte, heard_piece_bytes> piece;
  const auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (is_for_later(got)) return;
  if (got < 0) return fail_with(std::generic_category().message(errno));
  std::vector<std::byte> plain;
  if (got == 0) {
    has_ended_ = true;
  } else {
    const auto fed = session_.feed(std::span{piece}.first(static_cast<std::size_t>(got)), plain);
    if (!fed) {
      tell(); // the alert that says why
      return fail_with(fed.error().message);
    }
    has_ended_ = session_.is_closed();
  }
  heard_.append(reinterpret_cast<const char*>(plain.data()), plain.size());
  on_heard();
}

void enrolment_visit::on_heard() {
  switch (state_) {
  case state::asks: return on_message();
  case state::waits:
    if (!heard_.empty()) return fail_with("it says more than it should");
    if (has_ended_) fail_with("it hung up");
    return;
  case state::given:
    if (has_ended_) fail_with("it hung up");
    break;
  default:
    if (has_ended_) state_ = state::over;
  }
  if (heard_.size() > join_reason_bytes_max) heard_.resize(join_reason_bytes_max);
}

/// One after the other: who says more before it was answered is no host.
void enrolment_visit::on_message() {
  const auto end = heard_.find('\n');
  const auto head = end == heard_.npos ? std::nullopt : parse_join_head(heard_.substr(0, end));
  const bool is_wrong = end == heard_.npos
                            ? heard_.size() > join_line_max
                            : !head || !is_of_host(*head) || heard_.size() > end + 1 + head->bytes;
  if (is_wrong) return fail_with(no_request);
  if (head && heard_.size() == end + 1 + head->bytes) {
    const auto body = std::exchange(heard_, {}).substr(end + 1);
    if (head->word == key_word)
      on_proof(body);
    else
      on_request(*head, body);
  }
  if (has_ended_ && state_ != state::over) fail_with("it hung up");
}

/// Who has shown nothing is told nothing but that.
void enrolment_visit::on_proof(std::string_view shown) {
  if (is_proven_) return fail_with(no_request);
  const auto session = session_.binding();
  if (!session) return fail_with(session.error().message);
  is_proven_ = key_ && key_->is_proof(shown, join_key::side::host, *session);
  if (!is_proven_) {
    problem_ = key_ ? "it has another key than 'join.key_file' of the list of hosts names"
                    : "it wants to join by a key, and the list of hosts has no 'join.key_file'";
    return refuse(key_version, "no proof of the key of this job", false, deadline_);
  }
  const auto own = key_->proof(join_key::side::root, *session);
  say(written_message(key_word, key_version, {reinterpret_cast<const char*>(own.data()), own.size()}));
}

void enrolment_visit::on_request(const join_head& head, std::string_view body) {
  request made{head.version, {}, is_proven_};
  if (!made.what.ParseFromArray(body.data(), static_cast<int>(body.size())) ||
      (is_proven_ && !made.what.secret().empty()))
    return fail_with(no_request);
  request_ = std::move(made);
  state_ = state::waits;
  deadline_ = time_point::max();
}

// ---- to the host

void enrolment_visit::say(std::string message) {
  message_ = std::move(message);
  at_ = 0;
  tell();
}

void enrolment_visit::tell() {
  for (;;) {
    if (session_.wire().empty() && at_ < message_.size()) {
      const auto piece = std::as_bytes(std::span{message_})
                             .subspan(at_)
                             .first(std::min(told_piece_bytes, message_.size() - at_));
      if (const auto written = session_.write(piece); !written) return fail_with(written.error().message);
      at_ += piece.size();
    }
    const auto wire = session_.wire();
    if (wire.empty()) break;
    const auto sent = ::send(socket_.get(), wire.data(), wire.size(), MSG_NOSIGNAL);
    if (is_for_later(sent)) return;
    if (sent < 0) return fail_with(std::generic_category().message(errno));
    session_.sent(static_cast<std::size_t>(sent));
  }
  if (state_ != state::given) return;
  state_ = state::begins;
  deadline_ = time_point::max();
  message_.clear();
  message_.shrink_to_fit();
  at_ = 0;
}

} // namespace dlrun::agent
