#include "persistence/snapshot_reader.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"
#include "persistence/segment_file.hpp"
#include "persistence/snapshot_file.hpp"

#include <algorithm>
#include <rocksdb/file_system.h>

namespace dlrun::persistence {

struct snapshot_reader::state {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  std::string path;
  snapshot_info info;
  snapshot_trailer trailer;
  std::vector<std::byte> metadata;
  std::uint64_t at = file_head::bytes; // of the next chunk's head
  std::uint64_t payload_read = 0;
  std::uint32_t crc_of_heads = 0;
  std::vector<std::byte> chunk; // verified; given out up to chunk_used
  std::size_t chunk_used = 0;

  result<void> read_head();
  result<void> read_end(std::uint64_t file_bytes);
  /// 0 at the end of the payload.
  std::size_t next_chunk_bytes() const;
  result<void> check_total() const;
  result<void> read_chunk(std::span<std::byte> goal);
};

result<void> snapshot_reader::state::read_head() {
  std::array<std::byte, file_head::bytes> bytes{};
  if (auto got = read_exactly(*file, path, 0, bytes); !got) return got;
  const auto numbers = decode_file_head(bytes, file_head{snapshot_magic}, path);
  if (!numbers) return tl::unexpected(numbers.error());
  if ((*numbers)[2] != snapshot_chunk_bytes)
    return fail_damaged(path, 0, fmt::format("it has chunks of {} bytes", (*numbers)[2]));
  info.version = {(*numbers)[0]};
  info.timeline = {(*numbers)[1]};
  return {};
}

result<void> snapshot_reader::state::read_end(std::uint64_t file_bytes) {
  if (file_bytes < file_head::bytes + snapshot_trailer::encoded_bytes)
    return fail_damaged(path, file_bytes, "the file ends there");
  const auto end = file_bytes - snapshot_trailer::encoded_bytes;
  std::array<std::byte, snapshot_trailer::encoded_bytes> bytes{};
  if (auto got = read_exactly(*file, path, end, bytes); !got) return got;
  const auto decoded = decode_snapshot_trailer(bytes);
  if (!decoded || decoded->file_bytes != file_bytes ||
      decoded->metadata_bytes > snapshot_metadata_bytes_max ||
      decoded->metadata_bytes > end - file_head::bytes)
    return fail_damaged(path, end, "its trailer is not there");
  trailer = *decoded;
  info.payload_bytes = trailer.payload_bytes;
  info.file_bytes = file_bytes;
  metadata.resize(trailer.metadata_bytes);
  if (auto got = read_exactly(*file, path, end - metadata.size(), metadata); !got) return got;
  if (base::crc32c(metadata) != trailer.metadata_crc32c)
    return fail_damaged(path, end - metadata.size(), "the checksum of its metadata is wrong");
  return {};
}

std::size_t snapshot_reader::state::next_chunk_bytes() const {
  return std::min<std::uint64_t>(trailer.payload_bytes - payload_read, snapshot_chunk_bytes);
}

result<void> snapshot_reader::state::check_total() const {
  const auto expected_at = trailer.file_bytes - snapshot_trailer::encoded_bytes - trailer.metadata_bytes;
  if (at == expected_at && crc_of_heads == trailer.total_crc32c) return {};
  return fail_damaged(path, at, "its chunks are not those that its trailer tells of");
}

result<void> snapshot_reader::state::read_chunk(std::span<std::byte> goal) {
  std::array<std::byte, snapshot_chunk_head::encoded_bytes> head{};
  if (auto got = read_exactly(*file, path, at, head); !got) return got;
  if (auto got = read_exactly(*file, path, at + head.size(), goal); !got) return got;
  if (head != encode({static_cast<std::uint32_t>(goal.size()), payload_read}, goal))
    return fail_damaged(path, at, fmt::format("the checksum of its chunk of {} bytes is wrong", goal.size()));
  crc_of_heads = base::crc32c_extend(crc_of_heads, head);
  at += head.size() + goal.size();
  payload_read += goal.size();
  return payload_read == trailer.payload_bytes ? check_total() : result<void>();
}

snapshot_reader::snapshot_reader(std::unique_ptr<state> state)
    : state_(std::move(state)) {}
snapshot_reader::snapshot_reader(snapshot_reader&& other) noexcept = default;
snapshot_reader& snapshot_reader::operator=(snapshot_reader&& other) noexcept = default;
snapshot_reader::~snapshot_reader() = default;

result<snapshot_reader> snapshot_reader::open(const std::shared_ptr<file_system>& files,
                                              const std::string& path) {
  auto made = std::make_unique<state>();
  made->path = path;
  std::uint64_t file_bytes = 0;
  auto status = files->NewRandomAccessFile(path, {}, &made->file, nullptr);
  if (status.ok()) status = files->GetFileSize(path, {}, &file_bytes, nullptr);
  if (status.IsNotFound() || status.IsPathNotFound()) return fail_damaged(path, 0, "there is no such file");
  if (!status.ok()) return fail_status(status, "open", path);
  if (auto head = made->read_head(); !head) return tl::unexpected(head.error());
  if (auto end = made->read_end(file_bytes); !end) return tl::unexpected(end.error());
  if (made->trailer.payload_bytes == 0)
    if (auto total = made->check_total(); !total) return tl::unexpected(total.error());
  return snapshot_reader(std::move(made));
}

const snapshot_info& snapshot_reader::info() const { return state_->info; }
std::span<const std::byte> snapshot_reader::metadata() const { return state_->metadata; }

result<std::size_t> snapshot_reader::read(std::span<std::byte> bytes) {
  auto& s = *state_;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto rest = bytes.subspan(done);
    const auto ready = std::span(s.chunk).subspan(s.chunk_used);
    if (!ready.empty()) {
      const auto taken = std::min(ready.size(), rest.size());
      std::copy_n(ready.begin(), taken, rest.begin());
      s.chunk_used += taken;
      done += taken;
      continue;
    }
    const auto next = s.next_chunk_bytes();
    if (next == 0) break;
    // Whole chunks go straight to their goal.
    const bool straight = rest.size() >= next;
    if (!straight) {
      s.chunk.resize(next);
      s.chunk_used = s.chunk.size(); // until it is verified
    }
    if (auto got = s.read_chunk(straight ? rest.first(next) : std::span(s.chunk)); !got)
      return tl::unexpected(got.error());
    if (straight)
      done += next;
    else
      s.chunk_used = 0;
  }
  return done;
}

} // namespace dlrun::persistence
