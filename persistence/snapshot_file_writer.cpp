#include "persistence/snapshot_file_writer.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"
#include "persistence/snapshot_file.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <rocksdb/file_system.h>

namespace dlrun::persistence {

namespace {

/// Begun to be written back in pieces of this, so that the fsync at the end finds little left to
/// do.
constexpr std::uint64_t write_back_bytes = std::uint64_t{8} << 20;

std::string temporary_name(const std::string& path) { return path + ".tmp"; }

} // namespace

snapshot_file_writer::snapshot_file_writer(std::shared_ptr<file_system> files,
                                           std::unique_ptr<rocksdb::FSWritableFile> file,
                                           std::string directory, version_id version, timeline_id timeline)
    : files_(std::move(files))
    , file_(std::move(file))
    , directory_(std::move(directory))
    , path_(directory_ + "/" + snapshot_file_name(version, timeline))
    , version_(version)
    , timeline_(timeline) {}

snapshot_file_writer::~snapshot_file_writer() {
  if (file_ == nullptr) return;
  file_->Close({}, no_context).PermitUncheckedError();
  remove_file(*files_, temporary_name(path_));
}

result<std::unique_ptr<snapshot_file_writer>>
snapshot_file_writer::create(const std::shared_ptr<file_system>& files, const std::string& directory,
                             version_id version, timeline_id timeline) {
  const auto path = temporary_name(directory + "/" + snapshot_file_name(version, timeline));
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (const auto status = files->NewWritableFile(path, {}, &file, no_context); !status.ok())
    return fail_status(status, "create", path);
  std::unique_ptr<snapshot_file_writer> made(
      new snapshot_file_writer(files, std::move(file), directory, version, timeline));
  made->file_->SetPreallocationBlockSize(write_back_bytes);
  const auto head =
      encode(file_head{snapshot_magic, 1, {version.value, timeline.value, snapshot_chunk_bytes, 0, 0}});
  if (auto written = made->append(head); !written) return tl::unexpected(written.error());
  return made;
}

result<void> snapshot_file_writer::append(std::span<const std::byte> bytes) {
  file_->PrepareWrite(file_bytes_, bytes.size(), {}, no_context);
  const rocksdb::Slice slice(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto status = file_->Append(slice, {}, no_context); !status.ok())
    return fail_status(status, "write to", temporary_name(path_), bytes.size());
  file_bytes_ += bytes.size();
  if (file_bytes_ - started_bytes_ >= write_back_bytes) {
    file_->RangeSync(started_bytes_, file_bytes_ - started_bytes_, {}, no_context).PermitUncheckedError();
    started_bytes_ = file_bytes_;
  }
  return {};
}

result<void> snapshot_file_writer::append_chunk(std::span<const std::byte> chunk) {
  const auto head = encode({static_cast<std::uint32_t>(chunk.size()), payload_bytes_}, chunk);
  total_crc32c_ = base::crc32c_extend(total_crc32c_, head);
  if (auto written = append(head); !written) return written;
  payload_bytes_ += chunk.size();
  return append(chunk);
}

result<void> snapshot_file_writer::write(std::span<const std::byte> bytes) {
  DLRUN_CHECK(file_ != nullptr, "the snapshot {} is finished", path_);
  while (!bytes.empty()) {
    if (chunk_.empty() && bytes.size() >= snapshot_chunk_bytes) {
      if (auto written = append_chunk(bytes.first(snapshot_chunk_bytes)); !written) return written;
      bytes = bytes.subspan(snapshot_chunk_bytes);
      continue;
    }
    const auto taken = bytes.first(std::min(bytes.size(), snapshot_chunk_bytes - chunk_.size()));
    chunk_.insert(chunk_.end(), taken.begin(), taken.end());
    bytes = bytes.subspan(taken.size());
    if (chunk_.size() < snapshot_chunk_bytes) continue;
    if (auto written = append_chunk(chunk_); !written) return written;
    chunk_.clear();
  }
  return {};
}

result<void> snapshot_file_writer::append_end(std::span<const std::byte> metadata) {
  if (!chunk_.empty())
    if (auto written = append_chunk(chunk_); !written) return written;
  chunk_.clear();
  if (auto written = append(metadata); !written) return written;
  snapshot_trailer trailer{payload_bytes_, metadata.size(), file_bytes_ + snapshot_trailer::encoded_bytes,
                           base::crc32c(metadata), total_crc32c_};
  return append(encode(trailer));
}

result<snapshot_info> snapshot_file_writer::finish(std::span<const std::byte> metadata) {
  DLRUN_CHECK(file_ != nullptr, "the snapshot {} is finished", path_);
  DLRUN_CHECK(metadata.size() <= snapshot_metadata_bytes_max, "{} bytes of metadata", metadata.size());
  if (auto written = append_end(metadata); !written) return tl::unexpected(written.error());
  auto status = file_->Fsync({}, no_context);
  if (status.ok()) status = file_->Close({}, no_context);
  if (status.ok()) status = files_->RenameFile(temporary_name(path_), path_, {}, no_context);
  if (!status.ok()) return fail_status(status, "finish", path_, file_bytes_);
  file_.reset();
  if (auto synced = sync_directory(*files_, directory_); !synced) {
    remove_file(*files_, path_);
    return tl::unexpected(synced.error());
  }
  return snapshot_info{version_, timeline_, payload_bytes_, file_bytes_};
}

} // namespace dlrun::persistence
