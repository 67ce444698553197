// Opening a shard_store: what is there, what of it counts.
#include "base/crc32c.hpp"
#include "persistence/format_file.hpp"
#include "persistence/shard_store_parts.hpp"
#include "persistence/snapshot_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlrun/check.hpp>
#include <dlrun/detail/parallel_for.hpp>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace dlrun::persistence {

namespace {

constexpr folder_format store_format{"dlrun-shard-store", 1};
constexpr std::size_t buffer_bytes = std::size_t{16} << 20;
constexpr std::size_t damage_lines_max = 32;
constexpr unsigned verifying_threads_max = 4;
/// Verified in about a millisecond.
constexpr std::uint64_t bytes_worth_a_thread = std::uint64_t{4} << 20;
constexpr const char* way_out =
    "move the folder away, and the shard begins anew with what the others can compute again";

bool is_snapshot_name(const std::string& name) {
  return name.find(".snap") != std::string::npos &&
         name.find_first_not_of("0123456789-.snaptm") == std::string::npos;
}

/// Of a folder that may not be entered RocksDB says that there is nothing in it.
tl::unexpected<error> fail_absent(const std::string& directory) {
  if (::faccessat(AT_FDCWD, directory.c_str(), X_OK, AT_EACCESS) != 0 && errno == EACCES)
    return fail(error_code::system, fmt::format("cannot look into {}: {}", directory, std::strerror(errno)));
  return fail(error_code::bad_usage, fmt::format("there is no store in {}", directory));
}

} // namespace

void shard_store::implementation::note_damage(std::string line) {
  if (found_.damaged.size() < damage_lines_max)
    found_.damaged.push_back(std::move(line));
  else
    ++damage_left_out_;
}

result<std::string> shard_store::implementation::get_fact(const std::string& key) const {
  auto value = database_->get(table::facts, key);
  if (!value) return tl::unexpected(value.error());
  return std::move(*value).value_or("");
}

result<void> shard_store::implementation::delete_fact(const std::string& key) {
  rocksdb::WriteBatch batch;
  batch.Delete(database_->handle(table::facts), key);
  return database_->write(batch, false);
}

result<void> shard_store::implementation::open() {
  DLRUN_CHECK(options_.segment_bytes > 0, "segments of 0 bytes");
  if (auto ready = options_.read_only ? check_there() : create_folders(); !ready) return ready;
  for (const auto step :
       {&implementation::open_database, &implementation::load_facts, &implementation::load_snapshots,
        &implementation::load_log, &implementation::settle})
    if (auto done = (this->*step)(); !done) return done;
  return {};
}

result<void> shard_store::implementation::create_folders() {
  for (const auto* folder : {"/segments", "/snapshots"})
    if (auto made = create_directories(*files_, options_.directory + folder); !made) return made;
  return {};
}

/// Before a look. A reader takes no lock of RocksDB's, so whether somebody writes is asked first.
result<void> shard_store::implementation::check_there() const {
  const auto known = check_format(*files_, options_.directory, store_format);
  if (!known) return tl::unexpected(known.error());
  if (*known) return database::check_unheld(*files_, log_directory_);
  return fail_absent(options_.directory);
}

result<void> shard_store::implementation::open_database() {
  const auto known = check_format(*files_, options_.directory, store_format);
  if (!known) return tl::unexpected(known.error());
  auto opened =
      database::open({log_directory_, files_, !*known, false, options_.read_only, buffer_bytes, way_out});
  if (!opened) return tl::unexpected(opened.error());
  database_ = std::move(*opened);
  return claim(!*known);
}

result<void> shard_store::implementation::claim(bool is_new) {
  const auto last = get_fact(keys::opener);
  if (!last) return tl::unexpected(last.error());
  const auto opener = decode_opener(*last);
  if (!opener || (last->empty() && !is_new))
    return fail(error_code::storage_damaged,
                fmt::format("{}: who opened it last is unreadable; {}", log_directory_, way_out));
  found_.last_opener = *opener;
  if (options_.read_only) return {};
  if (*opener > options_.opener)
    return fail(error_code::fenced,
                fmt::format("{} was opened by incarnation {}: incarnation {} comes too late",
                            options_.directory, *opener, options_.opener));
  rocksdb::WriteBatch batch;
  batch.Put(database_->handle(table::facts), keys::opener, encode_opener(options_.opener));
  if (auto written = database_->write(batch, true); !written) return written;
  if (!is_new) return {};
  // A folder without FORMAT is one whose creation was cut short, so there can be nothing in it.
  const auto records = database_->iterate(table::log);
  records->SeekToFirst();
  const auto history = get_fact(keys::history);
  if (records->Valid() || !history || !history->empty())
    return fail(error_code::storage_damaged,
                fmt::format("{} holds data, but its file FORMAT is gone: restore it; or {}",
                            options_.directory, way_out));
  return write_format(*files_, options_.directory, store_format);
}

result<void> shard_store::implementation::load_facts() {
  for (const auto& line : database_->dropped()) note_damage(line);
  const auto history = get_fact(keys::history);
  const auto floor = get_fact(keys::floor);
  if (!history) return tl::unexpected(history.error());
  if (!floor) return tl::unexpected(floor.error());
  const auto entries = decode_history(*history);
  const auto lowest = decode_floor(*floor);
  if (!entries || !lowest)
    return fail(error_code::storage_damaged,
                fmt::format("{}: its history is unreadable; {}", log_directory_, way_out));
  state_.history = *entries;
  state_.floor = *lowest;
  return {};
}

result<void> shard_store::implementation::load_snapshots() {
  const auto there = list_files(*files_, snapshot_directory_);
  if (!there) return tl::unexpected(there.error());
  std::vector<std::string> kept;
  std::vector<std::string> gone;
  const auto facts = database_->iterate(table::facts);
  for (facts->Seek(std::string(keys::snapshot_prefix));
       facts->Valid() && facts->key().starts_with(std::string(keys::snapshot_prefix)); facts->Next()) {
    const auto snapshot = decode_snapshot(facts->value().ToStringView());
    const auto name = snapshot ? snapshot_file_name(snapshot->version, snapshot->timeline) : "?";
    const auto file = std::ranges::find(*there, name, &file_entry::name);
    if (snapshot && file != there->end() && file->bytes == snapshot->file_bytes) {
      state_.snapshots.push_back(*snapshot);
      kept.push_back(name);
      continue;
    }
    gone.push_back(facts->key().ToString());
    note_damage(
        file == there->end()
            ? fmt::format("{}/{}: there is no such file; the snapshot is dropped", snapshot_directory_, name)
            : fmt::format("{}/{}: it has {} bytes instead of {}; the snapshot is dropped",
                          snapshot_directory_, name, file->bytes, snapshot->file_bytes));
  }
  if (auto whole = database_->verify(*facts); !whole) return whole;
  if (options_.read_only) return {};
  for (const auto& key : gone)
    if (auto deleted = delete_fact(key); !deleted) return deleted;
  // Cut short before they counted, or dropped and not yet removed.
  for (const auto& file : *there)
    if (is_snapshot_name(file.name) && std::ranges::find(kept, file.name) == kept.end())
      remove_file(*files_, snapshot_directory_ + "/" + file.name);
  return {};
}

/// A record as RocksDB has it; its payload, if it is in a segment, is not looked at.
shard_store::implementation::found_record shard_store::implementation::examine(step_id step,
                                                                               std::string_view value) const {
  const auto record = decode_record(step, value);
  found_record found;
  found.step = step;
  if (!record) {
    found.damage = fmt::format("{}: the record of step {} is unreadable", log_directory_, step);
  } else if (record->place) {
    found.place = record->place;
    found.payload = {step, record->head.timeline, record->head.payload_bytes, record->payload_crc32c};
  } else if (base::crc32c(record->inlined) != record->payload_crc32c) {
    found.damage = fmt::format("{}: the checksum of step {} is wrong", log_directory_, step);
  }
  return found;
}

/// Reads all payloads in segments, with a few threads: a PS shard that comes back waits for this.
void shard_store::implementation::verify_payloads(std::vector<found_record>& records) const {
  std::uint64_t bytes = 0;
  for (const auto& record : records) bytes += record.place ? record.payload.bytes : 0;
  const auto threads = std::min<std::uint64_t>(
      {std::thread::hardware_concurrency(), verifying_threads_max, bytes / bytes_worth_a_thread});
  dlrun::detail::parallel_for(records.size(), static_cast<unsigned>(threads), [&] {
    return [&](std::size_t i) {
      auto& record = records[i];
      if (!record.place) return;
      const auto got = segments_.verify(*record.place, record.payload);
      if (got) return;
      if (got.error().code == error_code::storage_damaged)
        record.damage = got.error().message;
      else
        record.failure = got.error();
    };
  });
}

result<void> shard_store::implementation::load_log() {
  if (auto listed = segments_.find_files(); !listed) return listed;
  std::vector<found_record> records;
  const auto stored = database_->iterate(table::log);
  for (stored->Seek(keys::of_step(step_from(state_.floor))); stored->Valid(); stored->Next()) {
    const auto step = keys::to_step(stored->key().ToStringView());
    if (!step)
      return fail(error_code::storage_damaged,
                  fmt::format("{} holds a key that is no step; {}", log_directory_, way_out));
    records.push_back(examine(*step, stored->value().ToStringView()));
  }
  if (auto whole = database_->verify(*stored); !whole) return whole;
  verify_payloads(records);
  for (const auto& record : records) {
    if (record.failure) return tl::unexpected(*record.failure);
    if (record.damage.empty())
      state_.steps.add(record.step);
    else
      note_damage(fmt::format("{}; step {} is dropped", record.damage, record.step));
  }
  return drop_unreachable(records);
}

/// Replay stops at the first record that is bad or missing (R11a): what is behind it and above every snapshot
/// goes, so that the log goes on where replay ends.
result<void> shard_store::implementation::drop_unreachable(const std::vector<found_record>& records) {
  const auto end = next_step_of(state_);
  const auto& ranges = state_.steps.ranges();
  if (!ranges.empty() && ranges.back().end > end) {
    note_damage(fmt::format("{}: the steps {} to {} are dropped, since steps before them are missing",
                            log_directory_, std::max(ranges.back().first, end), ranges.back().end.value - 1));
    state_.steps.cut_from(end);
  }
  for (const auto& record : records)
    if (record.place && record.damage.empty() && record.step < end)
      segments_.use(record.place->segment, record.step);
  if (options_.read_only) return {};
  rocksdb::WriteBatch batch;
  batch.DeleteRange(database_->handle(table::log), keys::of_step(end), keys::after_all_steps());
  return database_->write(batch, false);
}

/// In mode `power` what was found is on disk before anyone hears of it (R11b). In mode `process` it counts
/// like what is appended: the operating system has it, and the next sync takes it along. A sync here would
/// keep everybody waiting for all that the last process wrote in its last seconds.
result<void> shard_store::implementation::settle() {
  const auto end = next_step_of(state_);
  state_.synced_end = state_.snapshots.empty() ? step_id{0} : step_from(state_.snapshots.back().version);
  if (!options_.read_only) segments_.remove_unused();
  if (!options_.read_only && options_.sync == sync_mode::power) {
    if (auto synced = segments_.sync(); !synced) return synced;
    if (auto synced = sync_directory(*files_, snapshot_directory_); !synced) return synced;
    if (auto synced = database_->sync(); !synced) return synced;
    state_.synced_end = end;
  }
  found_.history = state_.history;
  found_.snapshots = state_.snapshots;
  found_.log_first = found_.log_end = end;
  if (const auto& ranges = state_.steps.ranges(); !ranges.empty() && ranges.back().end == end)
    found_.log_first = ranges.back().first;
  if (damage_left_out_ > 0) found_.damaged.push_back(fmt::format("and {} more", damage_left_out_));
  count_database_bytes(0);
  if (const auto measured = database_->bytes_on_disk()) database_bytes_ = *measured;
  database_bytes_measured_ = database_bytes_.load();
  return {};
}

} // namespace dlrun::persistence
