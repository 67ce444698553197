// Snapshots, rewinds and the floor of a shard_store: what changes its facts.
#include "persistence/shard_store_parts.hpp"
#include "persistence/snapshot_file.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

auto find_snapshot(const store_state& state, version_id version) {
  return std::ranges::find(state.snapshots, version, &snapshot_info::version);
}

} // namespace

result<std::uint64_t> shard_store::implementation::begin_snapshot(version_id version, timeline_id timeline) {
  if (auto usable = check_usable(); !usable) return tl::unexpected(usable.error());
  const std::lock_guard lock(mutex_);
  if (timeline < timeline_of(state_))
    return fail(error_code::fenced,
                fmt::format("{} is on timeline {}: a snapshot of timeline {} comes too late",
                            options_.directory, timeline_of(state_), timeline));
  DLRUN_CHECK(find_snapshot(state_, version) == state_.snapshots.end(),
              "{} has a snapshot of version {} already", options_.directory, version);
  state_.in_the_making.push_back(version);
  return state_.rewinds;
}

void shard_store::implementation::end_snapshot(version_id version, std::uint64_t rewinds) {
  const std::lock_guard lock(mutex_);
  if (state_.rewinds != rewinds) return;
  const auto found = std::ranges::find(state_.in_the_making, version);
  if (found != state_.in_the_making.end()) state_.in_the_making.erase(found);
}

result<void> shard_store::implementation::register_snapshot(const snapshot_info& snapshot,
                                                            std::uint64_t rewinds) {
  if (auto synced = sync(); !synced) return tl::unexpected(synced.error());
  const std::lock_guard log_lock(log_mutex_);
  if (auto ready = recover(); !ready) return ready;
  {
    const std::lock_guard lock(mutex_);
    if (state_.rewinds != rewinds)
      return fail(error_code::fenced,
                  fmt::format("{} was rewound while its snapshot of version {} was written",
                              options_.directory, snapshot.version));
    if (snapshot.version < state_.floor)
      return fail(error_code::fenced,
                  fmt::format("{} dropped everything below version {} while its snapshot of version "
                              "{} was written",
                              options_.directory, state_.floor, snapshot.version));
    for (const auto version : state_.in_the_making)
      DLRUN_CHECK(version >= snapshot.version, "the snapshot of version {} ends before that of version {}",
                  snapshot.version, version);
    DLRUN_CHECK(find_snapshot(state_, snapshot.version) == state_.snapshots.end(),
                "two snapshots of version {}", snapshot.version);
  }
  rocksdb::WriteBatch batch;
  batch.Put(database_->handle(table::facts), keys::of_snapshot(snapshot.version), encode(snapshot));
  if (auto written = write(batch, true); !written) return written;
  const std::lock_guard lock(mutex_);
  const auto place =
      std::ranges::upper_bound(state_.snapshots, snapshot.version, {}, &snapshot_info::version);
  state_.snapshots.insert(place, snapshot);
  bytes_snapshotted_ += snapshot.file_bytes;
  return {};
}

result<snapshot_reader> shard_store::implementation::open_snapshot(version_id version) const {
  snapshot_info known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = find_snapshot(state_, version);
    if (found == state_.snapshots.end())
      return fail(error_code::bad_usage,
                  fmt::format("{} has no snapshot of version {}", options_.directory, version));
    known = *found;
  }
  const auto path = snapshot_directory_ + "/" + snapshot_file_name(known.version, known.timeline);
  auto reader = snapshot_reader::open(files_, path);
  if (reader && reader->info() != known)
    return fail(error_code::storage_damaged, fmt::format("{} is damaged: it is another snapshot", path));
  return reader;
}

void shard_store::implementation::remove_snapshot_files(std::span<const snapshot_info> snapshots) {
  for (const auto& snapshot : snapshots)
    remove_file(*files_, snapshot_directory_ + "/" + snapshot_file_name(snapshot.version, snapshot.timeline));
}

result<void> shard_store::implementation::discard_snapshot(version_id version) {
  const std::lock_guard log_lock(log_mutex_);
  if (auto usable = check_usable(); !usable) return usable;
  if (auto ready = recover(); !ready) return ready;
  auto after = with_state([](const store_state& state) { return state; });
  const auto found = find_snapshot(after, version);
  if (found == after.snapshots.end()) return {};
  const auto discarded = *found;
  after.snapshots.erase(found);
  // Steps that only this snapshot made reachable go with it.
  const auto end = next_step_of(after);
  rocksdb::WriteBatch batch;
  batch.Delete(database_->handle(table::facts), keys::of_snapshot(version));
  batch.DeleteRange(database_->handle(table::log), keys::of_step(end), keys::after_all_steps());
  if (auto written = write(batch, true); !written) return written;
  {
    const std::lock_guard lock(mutex_);
    std::erase(state_.snapshots, discarded);
    state_.steps.cut_from(end);
    state_.synced_end = std::min(state_.synced_end, end);
  }
  segments_.cut_from(end);
  remove_snapshot_files(std::span(&discarded, 1));
  return {};
}

result<void> shard_store::implementation::rewind(std::span<const history_entry> history, version_id to) {
  const std::lock_guard log_lock(log_mutex_);
  if (auto usable = check_usable(); !usable) return usable;
  if (auto ready = recover(); !ready) return ready;
  DLRUN_CHECK(!history.empty(), "a rewind to version {} without a history", to);
  const std::vector<history_entry> entries(history.begin(), history.end());
  const auto before = with_state([](const store_state& state) { return state; });
  if (entries == before.history) return {};
  if (!before.history.empty() && entries.back().timeline <= before.history.back().timeline)
    return fail(error_code::fenced,
                fmt::format("{} is on timeline {} already, a rewind to timeline {} comes too late",
                            options_.directory, before.history.back().timeline, entries.back().timeline));
  if (!contains(restorable_of(before), to))
    return fail(error_code::bad_usage, fmt::format("{} cannot restore version {}", options_.directory, to));
  std::vector<snapshot_info> above;
  std::ranges::copy_if(before.snapshots, std::back_inserter(above),
                       [&](const snapshot_info& snapshot) { return snapshot.version > to; });
  rocksdb::WriteBatch batch;
  batch.Put(database_->handle(table::facts), keys::history, encode(entries));
  if (to < before.floor) batch.Put(database_->handle(table::facts), keys::floor, encode_floor(to));
  for (const auto& snapshot : above)
    batch.Delete(database_->handle(table::facts), keys::of_snapshot(snapshot.version));
  batch.DeleteRange(database_->handle(table::log), keys::of_step(step_from(to)), keys::after_all_steps());
  if (auto written = write(batch, true); !written) {
    lost_ = true; // it may be there or not
    return written;
  }
  {
    const std::lock_guard lock(mutex_);
    state_.history = entries;
    state_.floor = std::min(state_.floor, to); // what is made from there on counts
    state_.steps.cut_from(step_from(to));
    std::erase_if(state_.snapshots, [&](const snapshot_info& snapshot) { return snapshot.version > to; });
    state_.synced_end = std::min(state_.synced_end, step_from(to));
    ++state_.rewinds;
    state_.in_the_making.clear();
  }
  segments_.cut_from(step_from(to));
  remove_snapshot_files(above);
  return {};
}

result<void> shard_store::implementation::drop_below(version_id floor, std::optional<version_id> kept) {
  const std::lock_guard log_lock(log_mutex_);
  if (auto usable = check_usable(); !usable) return usable;
  if (auto ready = recover(); !ready) return ready;
  const auto before = with_state([](const store_state& state) { return state; });
  auto base = before.floor; // the newest that is not above the floor
  for (const auto& snapshot : before.snapshots)
    if (snapshot.version <= floor) base = std::max(base, snapshot.version);
  const auto is_dropped = [&](const snapshot_info& one) { return one.version < base && one.version != kept; };
  std::vector<snapshot_info> below;
  std::ranges::copy_if(before.snapshots, std::back_inserter(below), is_dropped);
  if (base == before.floor && below.empty()) return {};
  rocksdb::WriteBatch batch;
  batch.Put(database_->handle(table::facts), keys::floor, encode_floor(base));
  for (const auto& snapshot : below)
    batch.Delete(database_->handle(table::facts), keys::of_snapshot(snapshot.version));
  if (auto written = write(batch, true); !written) return written;
  {
    const std::lock_guard lock(mutex_);
    state_.floor = base;
    std::erase_if(state_.snapshots, is_dropped);
    state_.steps.cut_below(step_from(base));
  }
  segments_.cut_below(step_from(base));
  remove_snapshot_files(below);
  database_->drop_log_files_below(keys::of_step(step_from(base)));
  return {};
}

struct snapshot_writer::state {
  shard_store::implementation* store;
  std::unique_ptr<snapshot_file_writer> file;
  version_id version;
  std::uint64_t rewinds = 0;
  std::uint64_t counted_bytes = 0;

  ~state() {
    store->unfinished_bytes -= counted_bytes;
    store->end_snapshot(version, rewinds);
  }
  void count() {
    store->unfinished_bytes += file->file_bytes() - counted_bytes;
    counted_bytes = file->file_bytes();
  }
};

result<snapshot_writer> shard_store::begin_snapshot(version_id version, timeline_id timeline) {
  const auto rewinds = parts_->begin_snapshot(version, timeline);
  if (!rewinds) return tl::unexpected(rewinds.error());
  std::unique_ptr<snapshot_writer::state> made{
      new snapshot_writer::state{parts_.get(), nullptr, version, *rewinds}};
  auto file = snapshot_file_writer::create(parts_->files(), parts_->snapshot_directory(), version, timeline);
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
  auto done = state_->store->check_quota(bytes.size());
  if (done) done = state_->file->write(bytes);
  if (done) {
    state_->count();
  } else {
    state_->store->make_room();
    state_.reset();
  }
  return done;
}

result<snapshot_info> snapshot_writer::commit(std::span<const std::byte> metadata) {
  DLRUN_CHECK(state_ != nullptr, "the snapshot was abandoned after an error, or is finished");
  const auto writing = std::move(state_); // whatever comes, the writer is done
  if (auto room = writing->store->check_quota(metadata.size()); !room) return tl::unexpected(room.error());
  auto finished = writing->file->finish(metadata);
  if (!finished) {
    writing->store->make_room();
    return finished;
  }
  if (auto counts = writing->store->register_snapshot(*finished, writing->rewinds); !counts) {
    remove_file(*writing->store->files(), writing->file->path());
    return tl::unexpected(counts.error());
  }
  return finished;
}

} // namespace dlrun::persistence
