#include "persistence/shard_store.hpp"

#include "base/crc32c.hpp"
#include "persistence/log_of_record.hpp"
#include "persistence/snapshot_file_writer.hpp"
#include "persistence/snapshot_shelf.hpp"
#include "persistence/store_cuts.hpp"
#include "persistence/store_opening.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

// ---- a payload

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

// ---- the store

struct shard_store::implementation {
  explicit implementation(const shard_store_options& options)
      : ground(options) {}

  store_ground ground;
  store_contents found;
  log_of_record log{ground};
  snapshot_shelf snapshots{ground, log};
};

shard_store::shard_store(std::unique_ptr<implementation> parts)
    : parts_(std::move(parts)) {}
shard_store::~shard_store() = default;

result<std::unique_ptr<shard_store>> shard_store::open(const shard_store_options& options) {
  auto parts = std::make_unique<implementation>(options);
  auto found = store_opening{parts->ground}.open();
  if (!found) return tl::unexpected(found.error());
  parts->found = std::move(*found);
  return std::unique_ptr<shard_store>(new shard_store(std::move(parts)));
}

const store_contents& shard_store::found() const { return parts_->found; }
std::uint64_t shard_store::identity() const {
  return parts_->ground.with_state([](const store_state& state) { return state.identity.number; });
}
result<void> shard_store::renew_identity() {
  const std::lock_guard log_lock(parts_->ground.log_mutex);
  if (auto usable = parts_->ground.check_usable(); !usable) return usable;
  if (auto ready = parts_->ground.recover(); !ready) return ready;
  return parts_->ground.renew_identity();
}
version_id shard_store::floor() const {
  return parts_->ground.with_state([](const store_state& state) { return state.floor; });
}
result<void> shard_store::append(std::span<const log_record> records) { return parts_->log.append(records); }
step_id shard_store::next_step() const { return parts_->ground.with_state(next_step_of); }
result<step_id> shard_store::sync() { return parts_->log.sync(); }
step_id shard_store::synced_end() const {
  return parts_->ground.with_state([](const store_state& state) { return state.synced_end; });
}
result<payload_reader> shard_store::open_payload(step_id step) const {
  return parts_->log.open_payload(step);
}
result<record_head> shard_store::read_head(step_id step) const { return parts_->log.read_head(step); }

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
  return parts_->ground.with_state([](const store_state& state) { return state.snapshots; });
}
std::vector<history_entry> shard_store::history() const {
  return parts_->ground.with_state([](const store_state& state) { return state.history; });
}
std::vector<base::version_range> shard_store::restorable() const {
  return parts_->ground.with_state(restorable_of);
}
std::vector<base::version_range> shard_store::logged() const {
  return parts_->ground.with_state([](const store_state& state) {
    std::vector<base::version_range> all;
    for (const auto& range : state.steps.ranges()) all.push_back({{range.first.value}, {range.end.value}});
    return all;
  });
}
store_counters shard_store::counters() const { return parts_->ground.counters(); }

result<snapshot_reader> shard_store::open_snapshot(version_id version) const {
  return parts_->snapshots.open(version);
}
result<void> shard_store::discard_snapshot(version_id version) { return parts_->snapshots.discard(version); }
result<void> shard_store::rewind(std::span<const history_entry> history, version_id to) {
  return rewind_store(parts_->ground, history, to);
}
result<void> shard_store::drop_below(version_id floor, std::optional<version_id> kept) {
  return drop_below_in(parts_->ground, floor, kept);
}

// ---- a snapshot in the making

struct snapshot_writer::state {
  shard_store::implementation* store;
  std::unique_ptr<snapshot_file_writer> file;
  version_id version;
  std::uint64_t rewinds = 0;
  std::uint64_t counted_bytes = 0;

  ~state() {
    store->ground.unfinished_bytes -= counted_bytes;
    store->snapshots.end(version, rewinds);
  }
  void count() {
    store->ground.unfinished_bytes += file->file_bytes() - counted_bytes;
    counted_bytes = file->file_bytes();
  }
};

result<snapshot_writer> shard_store::begin_snapshot(version_id version, timeline_id timeline) {
  const auto rewinds = parts_->snapshots.begin(version, timeline);
  if (!rewinds) return tl::unexpected(rewinds.error());
  std::unique_ptr<snapshot_writer::state> made{
      new snapshot_writer::state{parts_.get(), nullptr, version, *rewinds}};
  auto file = snapshot_file_writer::create(parts_->ground.files, parts_->ground.snapshot_directory, version,
                                           timeline);
  if (!file) return tl::unexpected(file.error());
  made->file = std::move(*file);
  return snapshot_writer(std::move(made));
}

snapshot_writer::snapshot_writer(std::unique_ptr<state> state)
    : state_(std::move(state)) {}
snapshot_writer::snapshot_writer(snapshot_writer&& other) noexcept = default;
snapshot_writer& snapshot_writer::operator=(snapshot_writer&& other) noexcept = default;
snapshot_writer::~snapshot_writer() = default;

result<void> snapshot_writer::write(std::span<const std::byte> bytes) {
  DLRUN_CHECK(state_ != nullptr, "the snapshot was abandoned after an error, or is finished");
  auto done = state_->store->ground.check_quota(bytes.size());
  if (done) done = state_->file->write(bytes);
  if (done) {
    state_->count();
  } else {
    state_->store->ground.make_room();
    state_.reset();
  }
  return done;
}

result<snapshot_info> snapshot_writer::commit(std::span<const std::byte> metadata, const verifier& verify) {
  DLRUN_CHECK(state_ != nullptr, "the snapshot was abandoned after an error, or is finished");
  const auto writing = std::move(state_); // whatever comes, the writer is done
  if (auto room = writing->store->ground.check_quota(metadata.size()); !room)
    return tl::unexpected(room.error());
  auto finished = writing->file->finish(metadata);
  if (!finished) {
    writing->store->ground.make_room();
    return finished;
  }
  auto counts = verify ? verify(snapshot_reader::open(writing->store->ground.files, writing->file->path()))
                       : result<void>();
  if (counts) counts = writing->store->snapshots.add(*finished, writing->rewinds);
  if (!counts) {
    remove_file(*writing->store->ground.files, writing->file->path());
    return tl::unexpected(counts.error());
  }
  return finished;
}

} // namespace dlrun::persistence
