#include "transport/gradient_segment.hpp"

#include <cstring>
#include <dlrun/check.hpp>
#include <new>
#include <type_traits>

namespace dlrun::transport {

namespace {

constexpr std::uint64_t gradient_magic = 0x64'61'72'67'6c'64'00'01; // "dlgrad", format 1
constexpr std::size_t gradient_floats_max =
    (segment_bytes_max_default - segment_header_bytes) / sizeof(float);

/// First page of the segment. `seal` is 0 while the values are being written, else the header's
/// sequence.
struct first_page {
  std::uint64_t magic;
  std::uint64_t floats;
  alignas(64) std::atomic<std::uint64_t> seal;
  alignas(64) gradient_header header;
};
static_assert(sizeof(first_page) <= segment_header_bytes && std::is_trivially_copyable_v<gradient_header>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

const first_page& page_of(const segment& memory) {
  return *std::launder(reinterpret_cast<const first_page*>(memory.bytes().data()));
}

first_page& page_of(segment& memory) {
  return *std::launder(reinterpret_cast<first_page*>(memory.mutable_bytes().data()));
}

std::span<const float> values_of(const segment& memory, std::size_t floats) {
  return {reinterpret_cast<const float*>(memory.bytes().data() + segment_header_bytes), floats};
}

std::string describe(const gradient_header& h) {
  return fmt::format(
      "timeline {} worker {} incarnation {} step {} slots [{}, {}) records {} size {} sequence {}",
      h.timeline, h.worker, h.worker_incarnation, h.step, h.slots_begin, h.slots_end, h.records, h.flat_size,
      h.sequence);
}

} // namespace

std::size_t gradient_segment_bytes(std::size_t floats) {
  return segment_header_bytes + floats * sizeof(float);
}

segment_part gradient_part(std::size_t first, std::size_t count) {
  return {{{{0, sizeof(first_page)}, {}}},
          {segment_header_bytes + first * sizeof(float), count * sizeof(float)}};
}

gradient_writer::gradient_writer(segment segment, std::size_t floats)
    : segment_(std::move(segment))
    , floats_(floats) {}

result<gradient_writer> gradient_writer::create(std::size_t floats) {
  if (auto ok = check_segment_floats("gradient", floats, gradient_floats_max); !ok)
    return tl::unexpected(ok.error());
  auto memory = segment::create("gradient", gradient_segment_bytes(floats));
  if (!memory) return tl::unexpected(memory.error());
  new (memory->mutable_bytes().data()) first_page{gradient_magic, floats, 0, {}};
  return gradient_writer(std::move(*memory), floats);
}

std::span<float> gradient_writer::mutable_values() {
  return {reinterpret_cast<float*>(segment_.mutable_bytes().data() + segment_header_bytes), floats_};
}

std::span<float> gradient_writer::begin_write() {
  page_of(segment_).seal.store(0, std::memory_order_relaxed);
  // The open seal must be seen before any of the writes that follow it.
  std::atomic_thread_fence(std::memory_order_release);
  sealed_ = false;
  return mutable_values();
}

gradient_header gradient_writer::seal_as(gradient_header header) {
  DLRUN_CHECK(!sealed_, "a sealed gradient is sealed again without begin_write()");
  DLRUN_CHECK(header.flat_size == floats_, "a gradient of {} values in a buffer of {}", header.flat_size,
              floats_);
  header.sequence = ++sequence_;
  auto& page = page_of(segment_);
  page.header = header;
  page.seal.store(header.sequence, std::memory_order_release);
  sealed_ = true;
  return header;
}

std::span<const float> gradient_writer::values() const { return values_of(segment_, floats_); }

gradient_reader::gradient_reader(segment segment, std::size_t floats)
    : segment_(std::move(segment))
    , floats_(floats) {}

result<gradient_reader> gradient_reader::open(segment segment, std::size_t floats) {
  if (auto ok = check_segment_floats("gradient", floats, gradient_floats_max); !ok)
    return tl::unexpected(ok.error());
  if (segment.size() != gradient_segment_bytes(floats))
    return fail(error_code::protocol, fmt::format("a segment of {} bytes cannot hold a gradient of {} values",
                                                  segment.size(), floats));
  const auto& page = page_of(std::as_const(segment));
  if (page.magic != gradient_magic || page.floats != floats)
    return fail(error_code::protocol,
                fmt::format("a segment does not begin like a gradient of {} values", floats));
  return gradient_reader(std::move(segment), floats);
}

result<std::span<const float>> gradient_reader::view(const gradient_header& expected) const {
  const auto& page = page_of(segment_);
  const auto seal = page.seal.load(std::memory_order_acquire);
  // A copy: the worker's process could change the original between check and use.
  gradient_header found;
  std::memcpy(static_cast<void*>(&found), &page.header, sizeof found);
  if (seal == 0)
    return fail(error_code::protocol,
                fmt::format("a gradient was pushed while its buffer is being written; announced "
                            "was {}",
                            describe(expected)));
  if (seal != expected.sequence || found != expected || found.flat_size != floats_)
    return fail(error_code::protocol,
                fmt::format("a gradient is not what its push announced: announced {}; found {}",
                            describe(expected), describe(found)));
  return values_of(segment_, floats_);
}

bool gradient_reader::unchanged(const gradient_header& expected) const {
  // What was read must have been read before the seal is looked at again.
  std::atomic_thread_fence(std::memory_order_acquire);
  return expected.sequence != 0 &&
         page_of(segment_).seal.load(std::memory_order_relaxed) == expected.sequence;
}

} // namespace dlrun::transport
