/// segment: a piece of memory that two processes of one host share.
#pragma once

#include "base/unique_fd.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace dlrun::transport {

/// Names a segment at the server that offers it. A server never gives one number twice, and an
/// address never names two servers, so (address, segment_id) means one segment for ever.
using segment_id = strong_id<struct segment_tag, std::uint64_t>;

/// The largest segment anyone may create or adopt unless a caller says otherwise: 64 GiB.
inline constexpr std::size_t segment_bytes_max_default = std::size_t{64} << 30;
/// What segments are laid out in, whatever the pages of the machine are.
inline constexpr std::size_t segment_page_bytes = 4096;
/// A segment of floats begins with a page that says what it is.
inline constexpr std::size_t segment_header_bytes = segment_page_bytes;

/// @returns limit_exceeded unless a `kind` segment ("gradient", "parameter") is asked for 1 to
///   `floats_max`.
result<void> check_segment_floats(std::string_view kind, std::size_t floats, std::size_t floats_max);

/// Shared memory: a sealed memfd and its mapping (or a copy of one, of_copy). Only the process that
/// created it can write; the kernel enforces that (F_SEAL_FUTURE_WRITE). Its size never changes, so
/// no peer can make a reader fault (SIGBUS). Move only. Mapping and descriptor end with the object,
/// the memory with its last user, also after kill -9. The payload is aligned to a page, hence to 64
/// bytes. Not thread-safe, as plain memory is not.
class segment {
public:
  /// An empty segment, as after a move.
  segment() = default;
  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  /// Creates `bytes` of zeroes, all pages present, so that the first use does not pay for page
  /// faults. `name` appears in /proc/<pid>/maps as "dlrun:<name>".
  /// @returns limit_exceeded for 0 or more than `bytes_max`, system when the OS refuses.
  static result<segment> create(std::string_view name, std::size_t bytes,
                                std::size_t bytes_max = segment_bytes_max_default);

  /// The same in an empty memfd that can be sealed, which somebody else has open too: the memory
  /// lives as long as they do. @returns as create(); bad_usage when `fd` is none.
  static result<segment> create_in(base::unique_fd fd, std::size_t bytes,
                                   std::size_t bytes_max = segment_bytes_max_default);

  /// Maps what a peer handed over, read-only, after checking that it is a memfd sealed against
  /// shrinking and growing and of exactly `expected_bytes`. Nothing of it is believed before that.
  /// @returns protocol when it is anything else, limit_exceeded for 0 or more than `bytes_max`.
  static result<segment> adopt(base::unique_fd fd, std::size_t expected_bytes,
                               std::size_t bytes_max = segment_bytes_max_default);

  /// Memory that `owner` keeps, as a copy of what a peer has; not writable, and no peer can map
  /// it.
  static segment of_copy(std::span<const std::byte> memory, std::shared_ptr<const void> owner);

  explicit operator bool() const { return address_ != nullptr; }
  /// True in the process that created it.
  bool writable() const { return writable_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {address_, size_}; }
  /// Requires writable().
  std::span<std::byte> mutable_bytes();
  /// Maps bytes [offset, offset + bytes) a second time, read-only, at `address`, in place of what
  /// is mapped there; offset and address at pages of the machine. The mapping outlives this object
  /// and is the caller's to undo. Requires memory that is mapped here (not of_copy). @returns
  /// system when the OS refuses.
  result<void> map_again(std::size_t offset, std::size_t bytes, std::byte* address) const;
  /// Another descriptor of the memfd, which outlives this object. @returns system when none is
  /// left.
  result<base::unique_fd> duplicate() const;
  /// The memfd, to be handed to peers; -1 in those, which have no use for it, and for a copy.
  int fd() const { return fd_.get(); }

private:
  segment(base::unique_fd fd, std::byte* address, std::size_t size, bool writable);

  base::unique_fd fd_;
  std::byte* address_ = nullptr;
  std::size_t size_ = 0;
  bool writable_ = false;
  std::shared_ptr<const void> owner_; ///< of memory that is not mapped here; else null
};

} // namespace dlrun::transport
