#include "persistence/store_ground.hpp"

#include "persistence/store_codec.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

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

store_ground::store_ground(const shard_store_options& with)
    : options(with)
    , files(with.files != nullptr ? with.files : default_file_system())
    , boot(with.boot.empty() ? boot_of_machine() : with.boot)
    , log_directory(with.directory + "/log")
    , snapshot_directory(with.directory + "/snapshots")
    , segments(files, with.directory + "/segments", with.segment_bytes) {}

result<void> store_ground::check_usable() const {
  DLRUN_CHECK(!options.read_only, "{} was opened for a look: it is not changed", options.directory);
  if (!lost && !database->lost()) return {};
  return fail(
      error_code::system,
      fmt::format(
          "{} takes no writes since a sync of it failed: what the disk holds is known only when it is "
          "opened again",
          options.directory));
}

void store_ground::count_database_bytes(std::uint64_t added) {
  database_bytes += added;
  if (database_bytes - database_bytes_measured < measure_every_bytes) return;
  if (const auto measured = database->bytes_on_disk()) database_bytes = *measured;
  database_bytes_measured = database_bytes.load();
}

store_counters store_ground::counters() const {
  store_counters counted;
  counted.bytes_logged = bytes_logged;
  counted.bytes_snapshotted = bytes_snapshotted;
  counted.bytes_in_snapshots = with_state([](const store_state& now) {
    std::uint64_t sum = 0;
    for (const auto& snapshot : now.snapshots) sum += snapshot.file_bytes;
    return sum;
  });
  counted.bytes_on_disk = counted.bytes_in_snapshots + unfinished_bytes + segments.bytes() + database_bytes;
  return counted;
}

result<void> store_ground::check_quota(std::uint64_t bytes) {
  const auto quota = options.disk_quota_bytes;
  if (quota == 0 || counters().bytes_on_disk + bytes <= quota) return {};
  make_room();
  if (const auto measured = database->bytes_on_disk()) database_bytes = *measured;
  const auto used = counters().bytes_on_disk;
  if (used + bytes <= quota) return {};
  return fail(error_code::limit_exceeded,
              fmt::format("{} holds {} bytes and may hold {}: there is no room for {} bytes more",
                          options.directory, used, quota, bytes));
}

/// Nothing has been acknowledged under it yet, so that in mode `power` no boot matters.
std::uint64_t store_ground::run() const {
  return options.run != 0 ? options.run : with_state([](const store_state& now) { return now.identity.run; });
}

result<void> store_ground::renew_identity() {
  const auto holds_under = options.sync == sync_mode::power ? std::string{} : boot;
  if (!options.read_only) return change_identity({random_identity(), holds_under, run()});
  const std::lock_guard lock(mutex);
  state.identity.number = 0;
  return {};
}

result<void> store_ground::keep_identity(bool beyond_boot) {
  const auto number = with_state([](const store_state& now) { return now.identity.number; });
  return change_identity({number, beyond_boot ? std::string{} : boot, run()});
}

result<void> store_ground::change_identity(store_identity to) {
  if (to == with_state([](const store_state& now) { return now.identity; })) return {};
  if (auto written = write_identity(*files, options.directory, to); !written) return written;
  const std::lock_guard lock(mutex);
  state.identity = std::move(to);
  return {};
}

result<void> store_ground::write(rocksdb::WriteBatch& batch, bool synced) {
  auto written = database->write(batch, synced);
  // RocksDB may remember an error that is over, e.g. of a flush while the disk was full: one more
  // try tells.
  if (!written && database->broken() && recover()) written = database->write(batch, synced);
  if (written) count_database_bytes(batch.GetDataSize());
  return written;
}

result<void> store_ground::recover() {
  if (database->broken()) has_leftovers_ = true;
  if (!has_leftovers_) return {};
  if (database->broken())
    if (auto opened = database->recover(); !opened) return opened;
  const auto opener = get_fact(keys::opener);
  if (!opener) return tl::unexpected(opener.error());
  if (const auto now = decode_opener(*opener); !now || *now > options.opener)
    return fail(error_code::fenced,
                fmt::format("{} was opened by a higher incarnation meanwhile", options.directory));
  if (auto dropped = drop_leftovers(); !dropped) return dropped;
  has_leftovers_ = false;
  return {};
}

/// The write that failed is as good as lost for whoever asked for it: what it may have left goes.
result<void> store_ground::drop_leftovers() {
  const auto now = with_state([](const store_state& current) { return current; });
  rocksdb::WriteBatch batch;
  if (auto erased = erase_steps_from(batch, next_step_of(now)); !erased) return erased;
  const auto after_all_snapshots = std::string(keys::snapshot_prefix) + keys::after_all_steps();
  if (auto erased = database->erase(batch, table::facts, keys::of_snapshot({0}), after_all_snapshots);
      !erased)
    return erased;
  auto* const facts = database->handle(table::facts);
  for (const auto& snapshot : now.snapshots)
    batch.Put(facts, keys::of_snapshot(snapshot.version), encode(snapshot));
  return database->write(batch, false);
}

result<void> store_ground::erase_steps_from(rocksdb::WriteBatch& batch, step_id first) const {
  return database->erase(batch, table::log, keys::of_step(first), keys::after_all_steps());
}

result<std::string> store_ground::get_fact(const std::string& key) const {
  auto value = database->get(table::facts, key);
  if (!value) return tl::unexpected(value.error());
  return std::move(*value).value_or("");
}

} // namespace dlrun::persistence
