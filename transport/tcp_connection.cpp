#include "transport/tcp_connection.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace dlrun::transport::tcp {
namespace {

/// Sent at a stretch, before others have their turn.
constexpr std::size_t send_turn_bytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds stranger_deadline{5000};

template <class Message>
Message read_as(const std::vector<std::byte>& bytes) {
  Message message;
  std::memcpy(static_cast<void*>(&message), bytes.data(), sizeof message);
  return message;
}

/// The owner may be writing them: word by word, each after the one before.
void append_words(const segment& from, const segment_piece& mark, std::vector<std::byte>& out) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(from.bytes().data() + mark.offset);
  for (std::size_t i = 0; i < mark.bytes / sizeof(std::uint64_t); ++i) {
    const auto word = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
    const auto* bytes = reinterpret_cast<const std::byte*>(&word);
    out.insert(out.end(), bytes, bytes + sizeof word);
  }
}

} // namespace

connection::connection(stream with, const run_token& token, const nonce& self, const nonce& mine,
                       std::chrono::milliseconds idle, time_point now)
    : stream_(std::move(with))
    , token_(token)
    , self_(self)
    , mine_(mine)
    , idle_(idle)
    , deadline_(now + std::min(idle, stranger_deadline)) {}

bool connection::go_on(const finder& find, time_point now) {
  if (is_sending()) return send(now);
  return receive(find) && (!is_sending() || send(now));
}

// ---- what comes in

bool connection::receive(const finder& find) {
  while (!is_sending()) {
    const auto have = in_.size();
    in_.resize(wanted_);
    const auto got = stream_.receive(std::span(in_).subspan(have));
    in_.resize(have + (got ? got->value_or(0) : 0));
    if (!got || *got == 0) return false;
    if (!*got) return true;
    if (in_.size() == wanted_ && !take_message(find)) return false;
  }
  return true;
}

bool connection::take_message(const finder& find) {
  const auto message = std::exchange(in_, {});
  switch (stage_) {
  case stage::greeting:
    greeting_ = read_as<hello>(message);
    if (greeting_.magic != hello_magic || greeting_.version != format_version || greeting_.server != self_)
      return false;
    greet();
    return true;
  case stage::proving:
    if (!same(read_as<answer>(message).knows, prove(token_, "client", greeting_, mine_))) return false;
    stage_ = stage::serving;
    wanted_ = sizeof(request);
    deadline_ = time_point::max();
    return true;
  case stage::serving: return serve(read_as<request>(message), find);
  }
  return false;
}

void connection::greet() {
  challenge said;
  said.server = mine_;
  said.knows = prove(token_, "server", greeting_, mine_);
  say(&said, sizeof said);
  stage_ = stage::proving;
  wanted_ = sizeof(answer);
}

bool connection::serve(const request& asked, const finder& find) {
  if (asked.magic != request_magic) return false;
  reply said;
  said.segment = asked.segment;
  auto found = find({asked.segment});
  if (!found)
    said.status = reply_status::unknown_segment;
  else if (found->size() != asked.bytes)
    said.status = reply_status::other_size;
  else if (!fits(asked.part, asked.bytes))
    said.status = reply_status::no_such_part;
  say(&said, sizeof said);
  if (said.status != reply_status::here) return true;
  from_ = std::move(found);
  part_ = asked.part;
  values_sent_ = 0;
  marks_ = read_marks();
  say(marks_.data(), marks_.size());
  return true;
}

std::vector<std::byte> connection::read_marks() const {
  std::vector<std::byte> marks;
  for (const auto& mark : part_.marks) append_words(*from_, mark, marks);
  return marks;
}

// ---- what goes out

void connection::say(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  small_.insert(small_.end(), bytes, bytes + size);
}

/// While there is something to send nothing is read: who does not take its answers gets no more of
/// them.
bool connection::send(time_point now) {
  if (deadline_ == time_point::max()) deadline_ = now + idle_;
  for (std::size_t turn = values_sent_; has_answer() && values_sent_ - turn < send_turn_bytes;) {
    const bool is_small = sent_ < small_.size();
    const auto left = is_small ? std::span<const std::byte>(small_).subspan(sent_)
                               : from_->bytes().subspan(part_.values.offset + values_sent_,
                                                        part_.values.bytes - values_sent_);
    if (!left.empty()) {
      auto& done = is_small ? sent_ : values_sent_;
      const auto before = done;
      if (!send_some(left.first(std::min(left.size(), send_turn_bytes)), done, now)) return false;
      if (done == before) break; // the socket takes no more
    }
    if (sent_ == small_.size() && from_ && values_sent_ == part_.values.bytes) finish_part();
  }
  const auto flushed = stream_.flush();
  if (!flushed) return false;
  if (*flushed && stage_ == stage::serving) deadline_ = now + idle_;
  if (is_sending()) return true;
  small_.clear();
  sent_ = 0;
  if (stage_ == stage::serving) deadline_ = time_point::max();
  return true;
}

/// @returns false when the connection is over.
bool connection::send_some(std::span<const std::byte> from, std::size_t& done, time_point now) {
  const auto sent = stream_.send(from);
  if (!sent) return false;
  if (!*sent) return true;
  done += **sent;
  if (stage_ == stage::serving) deadline_ = now + idle_;
  return true;
}

/// All values were read: what was written while they were shows in the marks.
void connection::finish_part() {
  std::atomic_thread_fence(std::memory_order_acquire);
  trailer said;
  said.unchanged = read_marks() == marks_ ? 1 : 0;
  from_.reset();
  say(&said, sizeof said);
}

} // namespace dlrun::transport::tcp
