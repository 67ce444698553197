#include "actors/ps_shard/copy_source.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace dlrun::ps_shard {

result<copy_source> copy_source::open(const persistence::shard_store& store, const copy_item& item) {
  copy_source made;
  if (item.kind == protocol::copy_kind::record) {
    auto record = store.read(step_from(item.version));
    if (!record) return tl::unexpected(record.error());
    made.content_bytes_ = record->payload.size();
    made.record_ = std::move(record->payload);
    made.extra_ = std::move(record->head.extra);
    return made;
  }
  auto snapshot = store.open_snapshot(item.version);
  if (!snapshot) return tl::unexpected(snapshot.error());
  made.content_bytes_ = snapshot->info().payload_bytes;
  const auto extra = snapshot->metadata();
  made.extra_.assign(reinterpret_cast<const char*>(extra.data()), extra.size());
  made.snapshot_.emplace(std::move(*snapshot));
  return made;
}

result<std::string> copy_source::read(std::size_t count) {
  std::string bytes(std::min<std::uint64_t>(count, total_bytes() - given_), '\0');
  const auto from_content =
      std::min<std::uint64_t>(bytes.size(), content_bytes_ - std::min(content_bytes_, given_));
  const auto into = std::as_writable_bytes(std::span(bytes)).first(from_content);
  if (snapshot_ && !into.empty()) {
    const auto had = snapshot_->read(into);
    if (!had) return tl::unexpected(had.error());
    if (*had < into.size())
      return fail(error_code::storage_damaged, "a snapshot that is copied ends too early");
  } else if (!into.empty()) {
    std::ranges::copy(std::span(record_).subspan(given_, into.size()), into.begin());
  }
  const auto from_extra = given_ + from_content - content_bytes_;
  if (from_content < bytes.size())
    std::memcpy(bytes.data() + from_content, extra_.data() + from_extra, bytes.size() - from_content);
  given_ += bytes.size();
  return bytes;
}

} // namespace dlrun::ps_shard
