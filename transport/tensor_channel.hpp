/// The two ends of a tensor channel, whatever carries the bytes: shared memory on one host, TCP, or
/// TLS between hosts.
#pragma once

#include "transport/doorbell.hpp"
#include "transport/run_token.hpp"
#include "transport/segment.hpp"

#include <array>
#include <chrono>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::security {
class tls_context;
}

namespace dlrun::transport {

/// The sending end: offers segments of this process to other processes. Thread-safe; no call blocks
/// on a peer.
class segment_offers {
public:
  segment_offers() = default;
  segment_offers(const segment_offers&) = delete;
  segment_offers& operator=(const segment_offers&) = delete;
  /// Stops serving. Peers keep the segments that they have.
  virtual ~segment_offers() = default;

  /// The address that the other end passes to segment_fetches::fetch(). Printable; no other server
  /// has it, now or later.
  virtual const std::string& address() const = 0;

  /// A shorter address, for processes of the same host only.
  virtual const std::string& near_address() const { return address(); }

  /// Offers `what` until withdrawn; `what` may go before.
  /// @returns the segment's id, given to no other segment of this server; limit_exceeded when too
  /// many are offered; system when the OS refuses.
  virtual result<segment_id> offer(const segment& what) = 0;

  /// Offers it no longer. Unknown ids are ignored.
  virtual void withdraw(segment_id id) = 0;

  /// From now on other processes may connect doorbells. `connected` gets our end of each, on a
  /// thread of the channel, and must not block. Before this call, and where the channel is not
  /// shared memory, doorbells are refused.
  virtual void on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) { (void)connected; }
};

/// Bytes [offset, offset + bytes) of a segment.
struct segment_piece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const segment_piece&) const = default;
};

/// The part of a segment that a reader wants, as parameter_part(), gradient_part() and
/// frozen_part() make it. `marks` are the words that change when the part is written: if they are
/// the same before and after the part was sent, the part was not torn. A piece of 0 bytes means no
/// piece.
struct segment_part {
  std::array<segment_piece, 2> marks{};
  segment_piece values{};
};
/// Marks are of this size together at most.
inline constexpr std::size_t segment_marks_bytes_max = segment_header_bytes;

/// The receiving end: fetches segments of other processes. Thread-safe; callers never block.
class segment_fetches {
public:
  /// Called once for each accepted fetch, on a thread of the channel; must not block. It may call
  /// fetch().
  using callback = std::function<void(result<segment>)>;

  segment_fetches() = default;
  segment_fetches(const segment_fetches&) = delete;
  segment_fetches& operator=(const segment_fetches&) = delete;
  /// Ends all fetches with error_code::interrupted. Not to be called from a callback.
  virtual ~segment_fetches() = default;

  /// Whether a segment fetched from `address` is the owner's memory, which shows what the owner
  /// writes later. Otherwise it is a copy of `part` as it was; the rest of the copy, first page
  /// included, is zero or meaningless.
  virtual bool is_shared(std::string_view address) const = 0;

  /// Asks the server at `address` for `part` of `id`, which must be `expected_bytes` long. Errors
  /// the callback gets: timed_out at `deadline`, later while a copy keeps coming; system when
  /// nobody listens there (its process is gone) or the OS refuses; fenced when the server belongs
  /// to another user or run; role_lost when it does not offer `id` (any more), or, of a copy, when
  /// the owner wrote there meanwhile; protocol when the answer is anything a correct server does
  /// not send; interrupted at the end of this object.
  /// @returns limit_exceeded when too many fetches are waiting: the callback is not called then.
  virtual result<void> fetch(std::string address, segment_id id, std::size_t expected_bytes,
                             const segment_part& part, std::chrono::steady_clock::time_point deadline,
                             callback done) = 0;

  /// Called once for each accepted connect, as a callback of a fetch is.
  using connected_callback = std::function<void(result<std::unique_ptr<doorbell>>)>;

  /// Connects a doorbell to the process whose server is at `address`. Errors as of fetch();
  /// role_lost when that process takes no doorbells. @returns bad_usage where nothing is shared.
  virtual result<void> connect_doorbell(std::string address, std::chrono::steady_clock::time_point deadline,
                                        connected_callback done) {
    (void)deadline, (void)done;
    return fail(error_code::bad_usage,
                fmt::format("{}: only a channel of shared memory has doorbells", address));
  }
};

/// What carries tensors on one host: `cluster.tensor_channel` of a job.
enum class channel_kind : std::uint8_t { shared_memory, tcp };

/// How processes of other hosts of the job reach this one, and this one them: by TLS.
struct host_access {
  /// Of this host, as others reach it: an IPv4 address in numbers.
  std::string listen;
  /// Credentials of this process, and the name of its host. Null: the job has one host.
  std::shared_ptr<const security::tls_context> tls;
};

struct channel_options {
  channel_kind near = channel_kind::shared_memory; ///< between processes of one host
  run_token token;
  host_access other_hosts{};
};

/// Ends with their own limits. With other hosts, each segment is offered both ways, and a fetch
/// goes by TLS to other hosts only. Errors as of the ends' start().
result<std::shared_ptr<segment_offers>> open_offers(const channel_options& options);
result<std::unique_ptr<segment_fetches>> open_fetches(const channel_options& options);

} // namespace dlrun::transport
