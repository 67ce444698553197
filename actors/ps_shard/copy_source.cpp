#include "actors/ps_shard/copy_source.hpp"

#include "base/crc32c.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace dlrun::ps_shard {

result<copy_source> copy_source::open(const persistence::shard_store& store, const copy_item& item) {
  copy_source made;
  if (item.kind == protocol::copy_kind::record) {
    auto record = store.open_payload(step_from(item.version));
    if (!record) return tl::unexpected(record.error());
    made.content_bytes_ = record->head().payload_bytes;
    made.extra_ = record->head().extra;
    made.record_.emplace(std::move(*record));
    made.begin_checksum(item.kind, {made.record_->head().step.value});
    return made;
  }
  auto snapshot = store.open_snapshot(item.version);
  if (!snapshot) return tl::unexpected(snapshot.error());
  made.content_bytes_ = snapshot->info().payload_bytes;
  const auto extra = snapshot->metadata();
  made.extra_.assign(reinterpret_cast<const char*>(extra.data()), extra.size());
  made.snapshot_.emplace(std::move(*snapshot));
  made.begin_checksum(item.kind, made.snapshot_->info().version);
  return made;
}

/// As soon as its store has verified what it says: memory may change from then on.
void copy_source::begin_checksum(protocol::copy_kind kind, version_id version) {
  begin_crc32c_ = protocol::piece_checksum(kind, version, content_bytes_, total_bytes());
  extra_crc32c_ = base::crc32c(extra_);
}

result<copy_source::given> copy_source::read(std::span<std::byte> into) {
  into = into.first(std::min<std::uint64_t>(into.size(), total_bytes() - given_));
  const auto of_content =
      std::min<std::uint64_t>(into.size(), content_bytes_ - std::min(content_bytes_, given_));
  const auto crc32c = read_content(into.first(of_content));
  if (!crc32c) return tl::unexpected(crc32c.error());
  const auto of_extra = into.subspan(of_content);
  if (!of_extra.empty())
    std::memcpy(of_extra.data(), extra_.data() + (given_ + of_content - content_bytes_), of_extra.size());
  given_ += into.size();
  given made{into.size(), base::crc32c_extend(*crc32c, of_extra)};
  content_crc32c_ = base::crc32c_combine(content_crc32c_, *crc32c, of_content);
  if (is_over())
    made.piece_crc32c = base::crc32c_combine(
        base::crc32c_combine(begin_crc32c_, content_crc32c_, content_bytes_), extra_crc32c_, extra_.size());
  return made;
}

/// @returns the checksum of it, as of all that follows.
result<std::uint32_t> copy_source::read_content(std::span<std::byte> into) {
  if (into.empty()) return 0;
  return record_ ? read_record(into) : read_snapshot(into);
}

result<std::uint32_t> copy_source::read_record(std::span<std::byte> into) {
  auto crc32c = record_->read(given_, into);
  if (!crc32c) return crc32c;
  if (given_ + into.size() < content_bytes_) return crc32c;
  const auto content = base::crc32c_combine(content_crc32c_, *crc32c, into.size());
  if (auto whole = record_->check(content); !whole) return tl::unexpected(whole.error());
  return crc32c;
}

result<std::uint32_t> copy_source::read_snapshot(std::span<std::byte> into) {
  const auto had = snapshot_->read(into);
  if (!had) return tl::unexpected(had.error());
  if (*had < into.size())
    return fail(error_code::storage_damaged, "a snapshot that is copied ends too early");
  return base::crc32c(into);
}

} // namespace dlrun::ps_shard
