/// A tcp_client's connection to one server.
#pragma once

#include "transport/copy_buffers.hpp"
#include "transport/tcp_stream.hpp"
#include "transport/tcp_wire.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::transport::tcp {

/// A fetch that has been asked for.
struct wanted {
  std::string address;
  segment_id id;
  std::size_t bytes = 0;
  segment_part part;
  std::chrono::steady_clock::time_point deadline;
  std::chrono::steady_clock::duration patience{}; ///< after which it is late when nothing comes
  segment_fetches::callback done;
  /// Where the copy goes, as large as the segment; nothing: into memory of the client's own.
  std::optional<copy_buffer> into{};
};

/// A fetch that is over, and how.
struct finished {
  wanted what;
  result<segment> outcome;
};

/// The client's side of one connection: asks for what is wanted, in order, and takes the answers.
/// Used by one thread; never blocks. Errors name the address.
class link {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Begins to connect; `tls` is for addresses that want it, and may be null. What is wrong with
  /// the address is found out by go_on().
  link(std::string address, const run_token& token, const nonce& mine, const security::tls_context* tls);

  const std::string& address() const { return address_; }
  int socket() const { return stream_.socket(); }
  short wants() const;
  /// Whether there is something to go on with, whatever poll() says.
  bool is_ready() const { return stream_.has_received(); }
  /// When the first of what is wanted is late; max() for none. However large it is and slow the
  /// way, it is not late while answers come.
  time_point deadline() const;

  void want(wanted what);

  /// Goes on as far as the socket lets it at `now`, but no longer than others can wait. `over` gets
  /// what is finished.
  /// @returns why the link is broken: everything that was wanted is to be taken with take_all().
  result<void> go_on(copy_buffers& memory, std::vector<finished>& over, time_point now);

  /// Everything that is wanted still, with the deadlines that it has by now. The link is of no use
  /// any more.
  std::deque<wanted> take_all();

private:
  enum class stage { connecting, greeted, ready };
  /// What comes next of the first answer.
  enum class expected { reply, first_mark, second_mark, values, trailer };

  result<void> begin_connect(const security::tls_context* tls);
  result<void> finish_connect();
  result<void> send_waiting();
  result<void> receive(copy_buffers& memory, std::vector<finished>& over);
  std::span<std::byte> room();
  result<void> take(copy_buffers& memory, std::vector<finished>& over);
  result<void> take_challenge();
  result<void> take_reply(copy_buffers& memory, std::vector<finished>& over);
  result<void> take_trailer(std::vector<finished>& over);
  void finish_first(result<segment> outcome, std::vector<finished>& over);
  time_point due(const wanted& one) const;
  void note_received(std::size_t bytes);
  void say(const void* data, std::size_t size);
  tl::unexpected<error> broken(error_code code, std::string_view what) const;
  tl::unexpected<error> lost(const error& why) const;

  std::string address_;
  run_token token_;
  hello greeting_;
  result<void> begun_;
  stream stream_;
  stage stage_ = stage::connecting;

  std::deque<wanted> asked_;  ///< in the order of the answers
  std::size_t requested_ = 0; ///< of these, from the first on
  std::string out_;
  std::size_t sent_ = 0;

  expected next_ = expected::reply;
  challenge challenge_;
  reply reply_;
  trailer trailer_;
  std::optional<copy_buffer> copy_; ///< of the first answer
  std::size_t received_ = 0;        ///< of what comes next

  time_point now_{};
  std::optional<time_point> moved_; ///< when answers got on, for the last time
  std::size_t since_moved_ = 0;     ///< bytes
};

} // namespace dlrun::transport::tcp
