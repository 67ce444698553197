#include "persistence/segment_file.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <rocksdb/file_system.h>

namespace dlrun::persistence {

namespace {

constexpr std::string_view magic = "dlrunseg";
constexpr std::size_t record_head_bytes = 32;
/// Records begin at multiples of this.
constexpr std::uint64_t alignment = 64;
/// Read and verified while it is in the cache.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
/// Written back at once before a sync waits for it.
constexpr std::uint64_t sync_piece_bytes = std::uint64_t{8} << 20;

/// Step (8), timeline (8), bytes (8), CRC32C of the payload (4), CRC32C of these 28 bytes (4).
std::array<std::byte, record_head_bytes> encode(const segment_record& head) {
  std::array<std::byte, record_head_bytes> bytes{};
  put(bytes, 0, head.step.value);
  put(bytes, 8, head.timeline.value);
  put(bytes, 16, head.bytes);
  put(bytes, 24, head.crc32c);
  put(bytes, 28, base::crc32c(std::span(bytes).first(28)));
  return bytes;
}

rocksdb::FileOptions writer_options() {
  rocksdb::FileOptions options;
  options.strict_bytes_per_sync = true; // RangeSync() waits for what was asked for before
  return options;
}

} // namespace

std::string segment_file_name(std::uint64_t number) { return fmt::format("{:06}.seg", number); }

result<void> read_exactly(const rocksdb::FSRandomAccessFile& file, const std::string& path,
                          std::uint64_t offset, std::span<std::byte> bytes) {
  if (bytes.empty()) return {};
  auto* const goal = reinterpret_cast<char*>(bytes.data());
  rocksdb::Slice got;
  if (const auto status = file.Read(offset, bytes.size(), {}, &got, goal, no_context); !status.ok())
    return fail_status(status, "read", path, bytes.size());
  if (got.size() < bytes.size()) return fail_damaged(path, offset + got.size(), "the file ends there");
  if (got.data() != goal) std::memcpy(goal, got.data(), got.size());
  return {};
}

segment_writer::segment_writer(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
                               std::uint64_t number, std::uint64_t preallocation_bytes,
                               std::uint64_t reused_bytes)
    : file_(std::move(file))
    , path_(std::move(path))
    , number_(number)
    , preallocation_bytes_(preallocation_bytes)
    , reused_bytes_(reused_bytes)
    , allocated_bytes_(reused_bytes) {}

segment_writer::~segment_writer() { file_->Close({}, no_context).PermitUncheckedError(); }

result<std::unique_ptr<segment_writer>> segment_writer::create(const std::shared_ptr<file_system>& files,
                                                               const std::string& directory,
                                                               std::uint64_t number,
                                                               std::uint64_t preallocation_bytes) {
  auto path = directory + "/" + segment_file_name(number);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (const auto status = files->NewWritableFile(path, writer_options(), &file, no_context); !status.ok())
    return fail_status(status, "create", path);
  return begin(files, std::move(path), std::move(file), {number, 0}, preallocation_bytes);
}

result<std::unique_ptr<segment_writer>>
segment_writer::reuse(const std::shared_ptr<file_system>& files, const std::string& directory,
                      std::uint64_t number, std::uint64_t preallocation_bytes, const spare_segment& over) {
  auto path = directory + "/" + segment_file_name(number);
  const auto before = directory + "/" + segment_file_name(over.number);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (const auto status = files->ReuseWritableFile(path, before, writer_options(), &file, no_context);
      !status.ok())
    return fail_status(status, "write over", before);
  return begin(files, std::move(path), std::move(file), {number, over.bytes}, preallocation_bytes);
}

/// A file of that number and size, with its head; it goes when that cannot be written.
result<std::unique_ptr<segment_writer>> segment_writer::begin(const std::shared_ptr<file_system>& files,
                                                              std::string path,
                                                              std::unique_ptr<rocksdb::FSWritableFile> file,
                                                              const spare_segment& as,
                                                              std::uint64_t preallocation_bytes) {
  std::unique_ptr<segment_writer> made(
      new segment_writer(std::move(file), path, as.number, preallocation_bytes, as.bytes));
  if (auto written = made->write(encode(file_head{magic, 1, {as.number, 0, 0, 0, 0}})); !written) {
    made.reset();
    remove_file(*files, path);
    return tl::unexpected(written.error());
  }
  return made;
}

/// Best effort: what cannot be had is told when it is written.
void segment_writer::preallocate_for(std::uint64_t bytes) {
  if (bytes_ + bytes <= allocated_bytes_) return;
  const auto pieces = (bytes_ + bytes - allocated_bytes_ + preallocation_bytes_ - 1) / preallocation_bytes_;
  file_->Allocate(allocated_bytes_, pieces * preallocation_bytes_, {}, no_context).PermitUncheckedError();
  allocated_bytes_ += pieces * preallocation_bytes_;
}

result<void> segment_writer::write(std::span<const std::byte> bytes) {
  preallocate_for(bytes.size());
  const rocksdb::Slice slice(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto status = file_->Append(slice, {}, no_context); !status.ok())
    return fail_status(status, "write to", path_, bytes.size());
  bytes_ += bytes.size();
  return {};
}

result<std::uint64_t> segment_writer::append(const segment_record& head, std::span<const std::byte> payload) {
  if (auto written = write(encode(head)); !written) return tl::unexpected(written.error());
  const std::uint64_t offset = bytes_;
  if (auto written = write(payload); !written) return tl::unexpected(written.error());
  constexpr std::array<std::byte, alignment> zeroes{};
  if (const auto over = bytes_ % alignment; over != 0)
    if (auto written = write(std::span(zeroes).first(alignment - over)); !written)
      return tl::unexpected(written.error());
  return offset;
}

/// Much is written in pieces, of which the disk has two at a time. So what others sync meanwhile
/// does not wait for all of it, and neither does the end of this process, should it be killed.
result<void> segment_writer::write_back(std::uint64_t goal) {
  for (auto begin = synced_bytes_.load(); begin + sync_piece_bytes < goal; begin += sync_piece_bytes)
    if (const auto status = file_->RangeSync(begin, sync_piece_bytes, {}, no_context); !status.ok())
      return fail_status(status, "sync", path_, goal);
  const auto status = file_->Sync({}, no_context);
  return status.ok() ? result<void>() : fail_status(status, "sync", path_, goal);
}

result<void> segment_writer::sync() {
  const std::uint64_t goal = bytes_;
  auto done = sync_failed_
                  ? fail_status(rocksdb::IOStatus::IOError("an earlier sync failed"), "sync", path_, goal)
                  : write_back(goal);
  if (!done) {
    sync_failed_ = true;
    return done;
  }
  auto before = synced_bytes_.load();
  while (before < goal && !synced_bytes_.compare_exchange_weak(before, goal)) {
  }
  return {};
}

void segment_writer::cut_to(std::uint64_t bytes) {
  if (!file_->Truncate(bytes, {}, no_context).ok()) return;
  bytes_ = bytes;
  reused_bytes_ = std::min(reused_bytes_, bytes);
  allocated_bytes_ = bytes;
}

void segment_writer::close() {
  if (allocated_bytes_ <= file_bytes()) return;
  file_->Truncate(file_bytes(), {}, no_context).PermitUncheckedError();
  allocated_bytes_ = file_bytes();
}

segment_reader::segment_reader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path)
    : file_(std::move(file))
    , path_(std::move(path)) {}

segment_reader::~segment_reader() = default;

result<std::unique_ptr<segment_reader>> segment_reader::open(const std::shared_ptr<file_system>& files,
                                                             const std::string& directory,
                                                             std::uint64_t number) {
  auto path = directory + "/" + segment_file_name(number);
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (const auto status = files->NewRandomAccessFile(path, {}, &file, no_context); !status.ok()) {
    if (status.IsNotFound() || status.IsPathNotFound()) return fail_damaged(path, 0, "there is no such file");
    return fail_status(status, "open", path);
  }
  std::array<std::byte, file_head::bytes> head{};
  if (auto got = read_exactly(*file, path, 0, head); !got) return tl::unexpected(got.error());
  const auto numbers = decode_file_head(head, file_head{magic}, path);
  if (!numbers) return tl::unexpected(numbers.error());
  if (numbers->front() != number)
    return fail_damaged(path, 0, fmt::format("it says that it is segment {}", numbers->front()));
  return std::unique_ptr<segment_reader>(new segment_reader(std::move(file), std::move(path)));
}

result<void> segment_reader::check_head(std::uint64_t offset, const segment_record& expected) const {
  if (offset < file_head::bytes + record_head_bytes)
    return fail_damaged(path_, offset, "no record can be there");
  std::array<std::byte, record_head_bytes> head{};
  if (auto got = read_exactly(*file_, path_, offset - record_head_bytes, head); !got) return got;
  if (head == encode(expected)) return {};
  return fail_damaged(path_, offset - record_head_bytes,
                      fmt::format("there is no record of step {}, timeline {}, {} bytes", expected.step,
                                  expected.timeline, expected.bytes));
}

result<std::uint32_t> segment_reader::read_part(std::uint64_t offset, std::span<std::byte> bytes,
                                                std::uint32_t before) const {
  auto crc = before;
  for (std::size_t done = 0; done < bytes.size();) {
    const auto piece = bytes.subspan(done, std::min(piece_bytes, bytes.size() - done));
    if (auto got = read_exactly(*file_, path_, offset + done, piece); !got)
      return tl::unexpected(got.error());
    crc = base::crc32c_extend(crc, piece);
    done += piece.size();
  }
  return crc;
}

result<void> segment_reader::check_sum(std::uint64_t offset, const segment_record& expected,
                                       std::uint32_t crc32c) const {
  if (crc32c == expected.crc32c) return {};
  return fail_damaged(
      path_, offset,
      fmt::format("the checksum of the {} bytes of step {} is wrong", expected.bytes, expected.step));
}

result<void> segment_reader::verify(std::uint64_t offset, const segment_record& expected) const {
  if (auto there = check_head(offset, expected); !there) return there;
  std::vector<std::byte> piece(std::min<std::uint64_t>(piece_bytes, expected.bytes));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < expected.bytes; done += piece.size()) {
    const auto left = std::min<std::uint64_t>(piece.size(), expected.bytes - done);
    const auto extended = read_part(offset + done, std::span(piece).first(left), crc);
    if (!extended) return tl::unexpected(extended.error());
    crc = *extended;
  }
  return check_sum(offset, expected, crc);
}

} // namespace dlrun::persistence
