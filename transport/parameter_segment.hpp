/// The segment in which a PS shard publishes its parameters, in two versions.
#pragma once

#include "transport/tensor_channel.hpp"

#include <atomic>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dlrun::transport {

/// The seqlock of one buffer. `sequence` is odd while the buffer is being written or holds nothing,
/// and grows with every change, so a reader notices any write that overlapped its reading, even one
/// that ends with the same version. (H.-J. Boehm, "Can seqlocks get along with programming language
/// memory models?", MSPC 2012.)
struct alignas(64) parameter_buffer_word {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> timeline;
  std::atomic<std::uint64_t> version;
};

/// First page of the segment; the two buffers follow. Where a segment has a part of a vector of
/// floats, the buffers begin as far behind the beginning of a page as that part would if the vector
/// began with one: then whole pages of several parts can be mapped side by side.
struct parameter_header {
  std::uint64_t magic;
  std::uint64_t format;
  std::uint64_t floats;
  std::uint64_t first; ///< number of the first of them in the vector
  parameter_buffer_word buffers[2];
};
static_assert(sizeof(parameter_header) <= 4096 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Size in bytes of a parameter segment for `floats` parameters; a reader must expect this size.
std::size_t parameter_segment_bytes(std::size_t floats);

/// The part of it to fetch for the version in buffer 0 or 1. `first` as for
/// parameter_writer::create().
segment_part parameter_part(std::size_t floats, int buffer, std::size_t first = 0);

/// Most floats of a parameter segment, and of one that its owner alone and later starts of it map:
/// the state of an optimizer may be several times as large.
inline constexpr std::size_t parameter_floats_max = segment_bytes_max_default / sizeof(float) / 4;
inline constexpr std::size_t retained_floats_max = 4 * parameter_floats_max;

/// A version that a parameter segment holds whole. Versions compare by age: the newest is the
/// greatest.
struct whole_version {
  timeline_id timeline;
  version_id version;
  auto operator<=>(const whole_version&) const = default;
};

/// The whole versions of the segment in this memfd, newest first: for a process that holds it for
/// others and maps nothing. Empty when the memfd holds no parameter segment.
std::vector<whole_version> whole_versions(int fd);

/// The PS shard's end of a parameter segment: holds the versions A and A-1 (at the beginning
/// fewer), and writes the next version into the buffer of the older one. Used by one thread.
class parameter_writer {
public:
  /// For floats [first, first + floats) of a vector; `first` is a multiple of 16.
  /// @returns limit_exceeded for 0 or too many floats, system when the OS refuses.
  static result<parameter_writer> create(std::size_t floats, std::size_t first = 0);
  /// The same in memory that somebody else has open too, as segment::create_in().
  static result<parameter_writer> create_in(base::unique_fd memory, std::size_t floats, std::size_t first = 0,
                                            std::size_t floats_max = parameter_floats_max);

  /// Begins `version` of `timeline` in the buffer of the older version, which is no longer served
  /// from now on. The span is valid until the writer dies; what it holds is unspecified. Requires
  /// that no write is under way.
  std::span<float> begin_write(timeline_id timeline, version_id version);
  /// Serves what was begun. Requires begin_write() before.
  void publish();
  /// Or gives it up: that buffer serves nothing, until it is written again. Requires begin_write()
  /// before.
  void abandon();

  /// Serves nothing any more: before a restore writes A-1 and then A, each by begin_write() and
  /// publish().
  void withdraw_all();

  /// Parameters of the version published last. Requires one.
  std::span<const float> current() const;
  /// To be offered to readers.
  const segment& shared() const { return segment_; }
  std::size_t floats() const { return floats_; }

private:
  static result<parameter_writer> lay_out(result<segment> memory, std::size_t floats, std::size_t first);
  parameter_writer(segment segment, std::size_t floats, std::size_t first);
  parameter_header& header();
  void invalidate(int buffer);

  segment segment_;
  std::size_t floats_, first_;
  int current_ = -1; ///< Buffer published last; -1 = none.
  int writing_ = -1; ///< Buffer begun and not published; -1 = none.
};

/// A version in place, in memory that its writer will use again.
struct parameter_view {
  std::span<const float> values;
  int buffer = 0;
  std::uint64_t sequence = 0; ///< of that buffer when the view was taken
};

/// A worker's end of a parameter segment: reads what a parameter_writer of another process
/// publishes. Thread-safe (reads only).
class parameter_reader {
public:
  /// @returns protocol when the segment is not one of `floats` parameters from `first` on.
  static result<parameter_reader> open(segment segment, std::size_t floats, std::size_t first = 0,
                                       std::size_t floats_max = parameter_floats_max);

  /// The versions that the segment holds now, newest first.
  std::vector<whole_version> versions() const;

  /// Copies `version` of `timeline` into `out`, which must have room for all floats.
  /// @returns false when that version is not served (any more) or went away during the copy: `out`
  /// is garbage then.
  bool copy(timeline_id timeline, version_id version, std::span<float> out) const;

  /// Lends the parameters in place, if that version is served. They may change under the reader: it
  /// must not act on a result before unchanged() has said that they were `version` throughout.
  /// Valid while this reader lives.
  std::optional<parameter_view> view(timeline_id timeline, version_id version) const;
  bool unchanged(const parameter_view& view) const;
  /// Maps bytes [offset, offset + bytes) of buffer 0 or 1 a second time, as segment::map_again().
  result<void> map_again(int buffer, std::size_t offset, std::size_t bytes, std::byte* address) const;

  std::size_t floats() const { return floats_; }
  std::size_t first() const { return first_; }

private:
  parameter_reader(segment segment, std::size_t floats, std::size_t first);
  const parameter_header& header() const;
  std::span<const float> buffer(int index) const;
  segment segment_;
  std::size_t floats_, first_;
};

} // namespace dlrun::transport
