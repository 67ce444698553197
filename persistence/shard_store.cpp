#include "persistence/shard_store.hpp"

#include "base/crc32c.hpp"
#include "persistence/shard_store_parts.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

/// What RocksDB and a segment take beside the payload, generously.
constexpr std::uint64_t record_overhead_bytes = 256;
/// RocksDB's files are measured anew after this much was written to them.
constexpr std::uint64_t measure_every_bytes = std::uint64_t{64} << 20;

} // namespace

std::vector<base::version_range> restorable_of(const store_state& state) {
  std::vector<version_id> bases;
  for (const auto& snapshot : state.snapshots) bases.push_back(snapshot.version);
  return restorable_versions(bases, state.steps);
}

timeline_id timeline_of(const store_state& state) {
  return state.history.empty() ? timeline_id{0} : state.history.back().timeline;
}

step_id next_step_of(const store_state& state) { return step_from(restorable_of(state).back().last); }

shard_store::implementation::implementation(const shard_store_options& options)
    : options_(options)
    , files_(options.files != nullptr ? options.files : default_file_system())
    , log_directory_(options.directory + "/log")
    , snapshot_directory_(options.directory + "/snapshots")
    , segments_(files_, options.directory + "/segments", options.segment_bytes) {}

result<void> shard_store::implementation::check_usable() const {
  DLRUN_CHECK(!options_.read_only, "{} was opened for a look: it is not changed", options_.directory);
  if (!lost_ && !database_->lost()) return {};
  return fail(
      error_code::system,
      fmt::format(
          "{} takes no writes since a sync of it failed: what the disk holds is known only when it is "
          "opened again",
          options_.directory));
}

void shard_store::implementation::count_database_bytes(std::uint64_t added) {
  database_bytes_ += added;
  if (database_bytes_ - database_bytes_measured_ < measure_every_bytes) return;
  if (const auto measured = database_->bytes_on_disk()) database_bytes_ = *measured;
  database_bytes_measured_ = database_bytes_.load();
}

store_counters shard_store::implementation::counters() const {
  store_counters counted;
  counted.bytes_logged = bytes_logged_;
  counted.bytes_snapshotted = bytes_snapshotted_;
  counted.bytes_in_snapshots = with_state([](const store_state& state) {
    std::uint64_t sum = 0;
    for (const auto& snapshot : state.snapshots) sum += snapshot.file_bytes;
    return sum;
  });
  counted.bytes_on_disk = counted.bytes_in_snapshots + unfinished_bytes + segments_.bytes() + database_bytes_;
  return counted;
}

result<void> shard_store::implementation::check_quota(std::uint64_t bytes) {
  const auto quota = options_.disk_quota_bytes;
  if (quota == 0 || counters().bytes_on_disk + bytes <= quota) return {};
  make_room();
  if (const auto measured = database_->bytes_on_disk()) database_bytes_ = *measured;
  const auto used = counters().bytes_on_disk;
  if (used + bytes <= quota) return {};
  return fail(error_code::limit_exceeded,
              fmt::format("{} holds {} bytes and may hold {}: there is no room for {} bytes more",
                          options_.directory, used, quota, bytes));
}

void shard_store::implementation::check_order(std::span<const log_record> records) const {
  const std::lock_guard lock(mutex_);
  auto expected = next_step_of(state_);
  const auto timeline = timeline_of(state_);
  for (const auto& record : records) {
    DLRUN_CHECK(record.step == expected, "step {} is appended to {} where step {} comes next", record.step,
                options_.directory, expected);
    DLRUN_CHECK(record.timeline >= timeline,
                "step {} of timeline {} is appended to {}, which is on timeline {}", record.step,
                record.timeline, options_.directory, timeline);
    DLRUN_CHECK(record.extra.size() <= extra_bytes_max, "step {} comes with {} bytes beside its payload",
                record.step, record.extra.size());
    ++expected.value;
  }
}

/// The value of each record; large payloads are in segments afterwards.
result<std::vector<std::string>>
shard_store::implementation::write_segments(std::span<const log_record> records) {
  std::vector<std::uint32_t> checksums;
  std::vector<segment_payload> large;
  for (const auto& record : records) {
    checksums.push_back(base::crc32c(record.payload));
    if (record.payload.size() > options_.inline_bytes_max)
      large.push_back(
          {{record.step, record.timeline, record.payload.size(), checksums.back()}, record.payload});
  }
  const auto places = segments_.append(large);
  if (!places) return tl::unexpected(places.error());
  std::vector<std::string> values;
  std::size_t next = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool inlined = records[i].payload.size() <= options_.inline_bytes_max;
    values.push_back(
        encode(records[i], checksums[i], inlined ? std::nullopt : std::optional((*places)[next++])));
  }
  return values;
}

result<void> shard_store::implementation::append(std::span<const log_record> records) {
  const std::lock_guard log_lock(log_mutex_);
  check_order(records);
  if (records.empty()) return {};
  if (auto usable = check_usable(); !usable) return usable;
  std::uint64_t payload_bytes = 0;
  for (const auto& record : records) payload_bytes += record.payload.size() + record.extra.size();
  if (auto room = check_quota(payload_bytes + records.size() * record_overhead_bytes); !room) return room;
  if (auto ready = recover(); !ready) return ready;
  const auto values = write_segments(records);
  if (!values) return tl::unexpected(values.error());
  rocksdb::WriteBatch batch;
  for (std::size_t i = 0; i < records.size(); ++i)
    batch.Put(database_->handle(table::log), keys::of_step(records[i].step), (*values)[i]);
  if (auto written = write(batch, false); !written) {
    segments_.cut_from(records.front().step);
    make_room();
    return written;
  }
  bytes_logged_ += payload_bytes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& record : records) state_.steps.add(record.step);
  }
  if (options_.sync != sync_mode::power) return {};
  const auto synced = sync();
  return synced ? result<void>() : tl::unexpected(synced.error());
}

result<step_id> shard_store::implementation::sync() {
  const auto [end, synced, rewinds] = with_state([](const store_state& state) {
    return std::tuple(next_step_of(state), state.synced_end, state.rewinds);
  });
  if (auto usable = check_usable(); !usable) return tl::unexpected(usable.error());
  if (synced == end) return end;
  auto done = segments_.sync();
  if (done) done = database_->sync();
  if (!done) {
    // A write that failed meanwhile is not a sync that failed; but this one is not done either.
    if (!database_->broken()) lost_ = true;
    return tl::unexpected(done.error());
  }
  const std::lock_guard lock(mutex_);
  if (state_.rewinds == rewinds) state_.synced_end = std::max(state_.synced_end, end);
  return end;
}

result<void> shard_store::implementation::write(rocksdb::WriteBatch& batch, bool synced) {
  auto written = database_->write(batch, synced);
  // RocksDB may remember an error that is over, e.g. of a flush while the disk was full: one more try tells.
  if (!written && database_->broken() && recover()) written = database_->write(batch, synced);
  if (written) count_database_bytes(batch.GetDataSize());
  return written;
}

result<void> shard_store::implementation::recover() {
  if (!database_->broken()) return {};
  if (auto opened = database_->recover(); !opened) return opened;
  const auto opener = get_fact(keys::opener);
  if (!opener) return tl::unexpected(opener.error());
  if (const auto now = decode_opener(*opener); !now || *now > options_.opener)
    return fail(error_code::fenced,
                fmt::format("{} was opened by a higher incarnation meanwhile", options_.directory));
  return drop_leftovers();
}

/// The write that failed is as good as lost for whoever asked for it: what it may have left goes.
result<void> shard_store::implementation::drop_leftovers() {
  const auto state = with_state([](const store_state& current) { return current; });
  rocksdb::WriteBatch batch;
  batch.DeleteRange(database_->handle(table::log), keys::of_step(next_step_of(state)),
                    keys::after_all_steps());
  auto* const facts = database_->handle(table::facts);
  batch.DeleteRange(facts, keys::of_snapshot({0}),
                    std::string(keys::snapshot_prefix) + keys::after_all_steps());
  for (const auto& snapshot : state.snapshots)
    batch.Put(facts, keys::of_snapshot(snapshot.version), encode(snapshot));
  return database_->write(batch, false);
}

result<logged_record> shard_store::implementation::logged(step_id step) const {
  if (!with_state([&](const store_state& state) { return state.steps.contains(step); }))
    return fail(error_code::bad_usage,
                fmt::format("{} holds no record of step {}", options_.directory, step));
  const auto value = database_->get(table::log, keys::of_step(step));
  if (!value) return tl::unexpected(value.error());
  auto record = *value ? decode_record(step, **value) : std::nullopt;
  if (!record)
    return fail(error_code::storage_damaged,
                fmt::format("{}: the record of step {} is not what was written", log_directory_, step));
  return std::move(*record);
}

result<record_head> shard_store::implementation::read_head(step_id step) const {
  const auto record = logged(step);
  if (!record) return tl::unexpected(record.error());
  return record->head;
}

result<payload_reader> shard_store::implementation::open_payload(step_id step) const {
  auto found = logged(step);
  if (!found) return tl::unexpected(found.error());
  if (!found->place)
    return payload_reader{std::move(found->head), found->payload_crc32c, std::move(found->inlined),
                          log_directory_};
  auto file = segments_.open(*found->place);
  if (!file) return tl::unexpected(file.error());
  const auto& head = found->head;
  const segment_record expected{head.step, head.timeline, head.payload_bytes, found->payload_crc32c};
  if (auto there = (*file)->check_head(found->place->offset, expected); !there)
    return tl::unexpected(there.error());
  return payload_reader{std::move(found->head), found->payload_crc32c, std::move(*file),
                        found->place->offset};
}

payload_reader::payload_reader(record_head head, std::uint32_t crc32c, std::string inlined,
                               std::string log_directory)
    : head_(std::move(head))
    , crc32c_(crc32c)
    , inlined_(std::move(inlined))
    , log_directory_(std::move(log_directory)) {}

payload_reader::payload_reader(record_head head, std::uint32_t crc32c,
                               std::shared_ptr<const segment_reader> file, std::uint64_t offset)
    : head_(std::move(head))
    , crc32c_(crc32c)
    , file_(std::move(file))
    , offset_(offset) {}

result<std::uint32_t> payload_reader::read(std::uint64_t offset, std::span<std::byte> into) const {
  DLRUN_CHECK(offset <= head_.payload_bytes && into.size() <= head_.payload_bytes - offset,
              "bytes [{}, {}) of a payload of {}", offset, offset + into.size(), head_.payload_bytes);
  if (file_ != nullptr) return file_->read_part(offset_ + offset, into);
  std::ranges::copy(std::as_bytes(std::span(inlined_)).subspan(offset, into.size()), into.begin());
  return base::crc32c(into);
}

result<void> payload_reader::check(std::uint32_t crc32c) const {
  if (file_ != nullptr)
    return file_->check_sum(offset_, {head_.step, head_.timeline, head_.payload_bytes, crc32c_}, crc32c);
  if (crc32c == crc32c_) return {};
  return fail(error_code::storage_damaged, fmt::format("{}: the checksum of the {} bytes of step {} is wrong",
                                                       log_directory_, head_.payload_bytes, head_.step));
}

shard_store::shard_store(std::unique_ptr<implementation> parts)
    : parts_(std::move(parts)) {}
shard_store::~shard_store() = default;

result<std::unique_ptr<shard_store>> shard_store::open(const shard_store_options& options) {
  auto parts = std::make_unique<implementation>(options);
  if (auto opened = parts->open(); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<shard_store>(new shard_store(std::move(parts)));
}

const store_contents& shard_store::found() const { return parts_->found(); }
result<void> shard_store::append(std::span<const log_record> records) { return parts_->append(records); }
step_id shard_store::next_step() const { return parts_->with_state(next_step_of); }
result<step_id> shard_store::sync() { return parts_->sync(); }
step_id shard_store::synced_end() const {
  return parts_->with_state([](const store_state& state) { return state.synced_end; });
}
result<payload_reader> shard_store::open_payload(step_id step) const { return parts_->open_payload(step); }
result<record_head> shard_store::read_head(step_id step) const { return parts_->read_head(step); }

result<stored_record> shard_store::read(step_id step) const {
  const auto payload = open_payload(step);
  if (!payload) return tl::unexpected(payload.error());
  stored_record record{payload->head(), std::vector<std::byte>(payload->head().payload_bytes)};
  const auto crc = payload->read(0, record.payload);
  if (!crc) return tl::unexpected(crc.error());
  if (auto right = payload->check(*crc); !right) return tl::unexpected(right.error());
  return record;
}

std::vector<snapshot_info> shard_store::snapshots() const {
  return parts_->with_state([](const store_state& state) { return state.snapshots; });
}
std::vector<history_entry> shard_store::history() const {
  return parts_->with_state([](const store_state& state) { return state.history; });
}
std::vector<base::version_range> shard_store::restorable() const { return parts_->with_state(restorable_of); }
store_counters shard_store::counters() const { return parts_->counters(); }

result<snapshot_reader> shard_store::open_snapshot(version_id version) const {
  return parts_->open_snapshot(version);
}
result<void> shard_store::discard_snapshot(version_id version) { return parts_->discard_snapshot(version); }
result<void> shard_store::rewind(std::span<const history_entry> history, version_id to) {
  return parts_->rewind(history, to);
}
result<void> shard_store::drop_below(version_id floor, std::optional<version_id> kept) {
  return parts_->drop_below(floor, kept);
}

} // namespace dlrun::persistence
