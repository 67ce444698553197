#include "persistence/segment_set.hpp"

#include <algorithm>
#include <charconv>
#include <dlrun/check.hpp>
#include <optional>
#include <rocksdb/file_system.h>
#include <utility>

namespace dlrun::persistence {

namespace {

constexpr std::uint64_t preallocation_bytes_max = std::uint64_t{16} << 20;
/// Open files: those that wait for a sync, and those that are read.
constexpr std::size_t unsynced_max = 16;
constexpr std::size_t readers_max = 8;
/// What spare files take together, in full segments; one is kept whatever its size.
constexpr std::uint64_t spare_segments_max = 4;

/// The number in "000042.seg".
std::optional<std::uint64_t> number_of(const std::string& name) {
  std::uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return name == segment_file_name(number) ? std::optional(number) : std::nullopt;
}

} // namespace

segment_set::segment_set(std::shared_ptr<file_system> files, std::string directory,
                         std::uint64_t segment_bytes)
    : files_(std::move(files))
    , directory_(std::move(directory))
    , segment_bytes_(segment_bytes) {}

segment_set::~segment_set() {
  close_current();
  remove_spares();
}

result<void> segment_set::find_files() {
  const auto entries = list_files(*files_, directory_);
  if (!entries) return tl::unexpected(entries.error());
  const std::lock_guard lock(mutex_);
  for (const auto& entry : *entries)
    if (const auto number = number_of(entry.name)) {
      known_[*number].bytes = entry.bytes;
      found_unsynced_.insert(*number);
      next_number_ = std::max(next_number_, *number + 1);
    }
  return {};
}

void segment_set::use(std::uint64_t segment, step_id step) {
  const std::lock_guard lock(mutex_);
  auto& entry = known_[segment];
  entry.first = entry.used ? std::min(entry.first, step) : step;
  entry.end = std::max(entry.end, step_id{step.value + 1});
  entry.used = true;
}

void segment_set::remove_if(bool (*unneeded)(const file&, step_id), step_id limit) {
  std::vector<spare_segment> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, entry] : known_)
      if (unneeded(entry, limit)) gone.push_back({number, entry.bytes});
    for (const auto& one : gone) {
      known_.erase(one.number);
      readers_.erase(one.number);
      found_unsynced_.erase(one.number);
      std::erase_if(unsynced_, [&](const auto& writer) { return writer->number() == one.number; });
    }
    std::erase_if(gone, [this](const spare_segment& one) { return keep_spare(one); });
  }
  for (const auto& one : gone) remove(one.number);
}

/// mutex_ is held.
bool segment_set::keep_spare(const spare_segment& unneeded) {
  auto bytes = unneeded.bytes;
  for (const auto& spare : spares_) bytes += spare.bytes;
  if (!spares_.empty() && bytes > spare_segments_max * segment_bytes_) return false;
  spares_.push_back(unneeded);
  return true;
}

void segment_set::remove(std::uint64_t number) {
  remove_file(*files_, directory_ + "/" + segment_file_name(number));
}

void segment_set::remove_spares() {
  std::vector<spare_segment> gone;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(spares_);
  }
  for (const auto& one : gone) remove(one.number);
}

void segment_set::remove_unused() {
  remove_if([](const file& entry, step_id) { return !entry.used; }, {});
}

/// A file that is gone meanwhile holds nothing that counts.
result<void> segment_set::sync_found(std::uint64_t segment) {
  const auto path = directory_ + "/" + segment_file_name(segment);
  std::unique_ptr<rocksdb::FSRandomRWFile> file; // unlike a writable one it is not created
  auto status = files_->NewRandomRWFile(path, {}, &file, nullptr);
  if (status.ok()) status = file->Fsync({}, nullptr);
  const std::lock_guard lock(mutex_);
  if (!status.ok() && known_.contains(segment)) return fail_status(status, "sync", path);
  found_unsynced_.erase(segment);
  return {};
}

void segment_set::close_current() {
  if (current_ != nullptr) current_->close();
  const std::lock_guard lock(mutex_);
  current_.reset();
}

/// What was kept last, of which most is in memory; else a new file.
result<std::unique_ptr<segment_writer>> segment_set::make_writer() {
  const auto preallocation = std::min(preallocation_bytes_max, segment_bytes_);
  std::optional<spare_segment> spare;
  {
    const std::lock_guard lock(mutex_);
    if (!spares_.empty()) {
      spare = spares_.back();
      spares_.pop_back();
    }
  }
  if (spare) {
    if (auto made = segment_writer::reuse(files_, directory_, next_number_, preallocation, *spare))
      return made;
    remove(spare->number);
  }
  return segment_writer::create(files_, directory_, next_number_, preallocation);
}

result<void> segment_set::begin_file_for(std::uint64_t bytes) {
  if (current_ != nullptr && current_->bytes() + bytes <= segment_bytes_) return {};
  close_current();
  std::shared_ptr<segment_writer> oldest;
  {
    const std::lock_guard lock(mutex_);
    if (unsynced_.size() >= unsynced_max) oldest = unsynced_.front();
  }
  if (oldest != nullptr) {
    if (auto synced = oldest->sync(); !synced) return synced;
  }
  auto made = make_writer();
  if (!made) return tl::unexpected(made.error());
  const std::lock_guard lock(mutex_);
  std::erase(unsynced_, oldest);
  current_ = std::move(*made);
  unsynced_.push_back(current_);
  known_[next_number_++].bytes = current_->file_bytes();
  return {};
}

result<std::vector<segment_place>> segment_set::append_each(std::span<const segment_payload> payloads) {
  std::vector<segment_place> places;
  for (const auto& payload : payloads) {
    if (auto begun = begin_file_for(payload.bytes.size()); !begun) return tl::unexpected(begun.error());
    const auto offset = current_->append(payload.head, payload.bytes);
    const std::lock_guard lock(mutex_);
    known_[current_->number()].bytes = current_->file_bytes();
    if (!offset) return tl::unexpected(offset.error());
    places.push_back({current_->number(), *offset});
  }
  return places;
}

void segment_set::roll_back(std::uint64_t segment, std::uint64_t bytes) {
  // Whatever the failed write left is behind what counts; the next append begins a new file.
  if (current_ != nullptr && current_->number() == segment) {
    current_->cut_to(bytes);
    const std::lock_guard lock(mutex_);
    known_[segment].bytes = current_->file_bytes();
  }
  close_current();
  remove_unused();
  remove_spares(); // the disk may be full
}

result<std::vector<segment_place>> segment_set::append(std::span<const segment_payload> payloads) {
  const auto segment = current_ != nullptr ? current_->number() : 0;
  const auto bytes = current_ != nullptr ? current_->bytes() : 0;
  auto places = append_each(payloads);
  if (!places) {
    roll_back(segment, bytes);
    return places;
  }
  for (std::size_t i = 0; i < places->size(); ++i) use((*places)[i].segment, payloads[i].head.step);
  return places;
}

result<void> segment_set::sync() {
  const std::lock_guard one_at_a_time(sync_mutex_); // whoever finds nothing to do must know that it is done
  std::vector<std::shared_ptr<segment_writer>> writers;
  std::vector<std::uint64_t> found;
  std::uint64_t begun = 0;
  {
    const std::lock_guard lock(mutex_);
    writers = unsynced_;
    found.assign(found_unsynced_.begin(), found_unsynced_.end());
    begun = next_number_;
  }
  for (const auto segment : found)
    if (auto synced = sync_found(segment); !synced) return synced;
  for (const auto& writer : writers)
    if (!writer->synced())
      if (auto synced = writer->sync(); !synced) return synced;
  if (directory_synced_below_ < begun) {
    if (auto synced = sync_directory(*files_, directory_); !synced) return synced;
    directory_synced_below_ = begun;
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(unsynced_, [&](const auto& writer) { return writer != current_ && writer->synced(); });
  return {};
}

result<std::shared_ptr<segment_reader>> segment_set::reader(std::uint64_t segment) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = readers_.find(segment); found != readers_.end()) return found->second;
  }
  auto opened = segment_reader::open(files_, directory_, segment);
  if (!opened) return tl::unexpected(opened.error());
  const std::lock_guard lock(mutex_);
  if (readers_.size() >= readers_max) readers_.erase(readers_.begin());
  return readers_[segment] = std::move(*opened);
}

result<void> segment_set::verify(const segment_place& place, const segment_record& expected) const {
  const auto from = reader(place.segment);
  if (!from) return tl::unexpected(from.error());
  return (*from)->verify(place.offset, expected);
}

result<std::shared_ptr<const segment_reader>> segment_set::open(const segment_place& place) const {
  auto found = reader(place.segment);
  if (!found) return tl::unexpected(found.error());
  return std::shared_ptr<const segment_reader>{std::move(*found)};
}

void segment_set::cut_from(step_id first) {
  close_current(); // in each file the steps only grow
  {
    const std::lock_guard lock(mutex_);
    for (auto& [number, entry] : known_) entry.end = std::min(entry.end, first);
  }
  remove_if([](const file& entry, step_id limit) { return entry.first >= limit; }, first);
}

void segment_set::cut_below(step_id end) {
  bool current_too = false;
  if (current_ != nullptr) {
    const std::lock_guard lock(mutex_);
    const auto& entry = known_[current_->number()];
    current_too = entry.used && entry.end <= end;
  }
  if (current_too) close_current();
  remove_if([](const file& entry, step_id limit) { return entry.end <= limit; }, end);
}

std::uint64_t segment_set::bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [number, entry] : known_) sum += entry.bytes;
  for (const auto& spare : spares_) sum += spare.bytes;
  return sum;
}

} // namespace dlrun::persistence
