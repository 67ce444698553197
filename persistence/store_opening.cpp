#include "persistence/store_opening.hpp"

#include "base/crc32c.hpp"
#include "persistence/snapshot_file.hpp"
#include "persistence/store_codec.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlrun/check.hpp>
#include <dlrun/detail/parallel_for.hpp>
#include <fcntl.h>
#include <memory>
#include <thread>
#include <unistd.h>

namespace dlrun::persistence {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{16} << 20;
constexpr std::size_t damage_lines_max = 32;
constexpr unsigned verifying_threads_max = 4;
/// Verified in about a millisecond.
constexpr std::uint64_t bytes_worth_a_thread = std::uint64_t{4} << 20;
constexpr const char* way_out =
    "move the folder away, and the shard begins anew with what the others can compute again";
constexpr const char* damaged = "it was damaged"; // the reason for another identity

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

void store_opening::note_damage(std::string line) {
  if (found_.damaged.size() < damage_lines_max)
    found_.damaged.push_back(std::move(line));
  else
    ++damage_left_out_;
}

void store_opening::note_loss(std::string line) {
  has_lost_ = true;
  note_damage(std::move(line));
}

result<void> store_opening::renew_if_lost() {
  return has_lost_ && !is_renewed() ? renew(damaged) : result<void>();
}

bool store_opening::is_renewed() const { return !found_.why_new_identity.empty(); }

result<void> store_opening::renew(std::string why) {
  found_.why_new_identity = std::move(why);
  return on_.renew_identity();
}

result<void> store_opening::delete_fact(const std::string& key) {
  rocksdb::WriteBatch batch;
  batch.Delete(on_.database->handle(table::facts), key);
  return on_.database->write(batch, false);
}

result<store_contents> store_opening::open() {
  DLRUN_CHECK(on_.options.segment_bytes > 0, "segments of 0 bytes");
  if (auto ready = on_.options.read_only ? check_there() : create_folders(); !ready)
    return tl::unexpected(ready.error());
  for (const auto step : {&store_opening::open_database, &store_opening::load_facts,
                          &store_opening::load_snapshots, &store_opening::load_log, &store_opening::settle})
    if (auto done = (this->*step)(); !done) return tl::unexpected(done.error());
  return found_;
}

result<void> store_opening::create_folders() {
  for (const auto* folder : {"/segments", "/snapshots"})
    if (auto made = create_directories(*on_.files, on_.options.directory + folder); !made) return made;
  return {};
}

/// Before a look. A reader takes no lock of RocksDB's, so whether somebody writes is asked first.
result<void> store_opening::check_there() const {
  const auto known = read_identity(*on_.files, on_.options.directory);
  if (!known) return tl::unexpected(known.error());
  if (*known) return database::check_unheld(*on_.files, on_.log_directory);
  return fail_absent(on_.options.directory);
}

result<void> store_opening::open_database() {
  const auto known = read_identity(*on_.files, on_.options.directory);
  if (!known) return tl::unexpected(known.error());
  on_.state.identity = known->value_or(store_identity{});
  if (auto own = check_is_of(on_.state.identity, on_.options.run, on_.options.directory); !own) return own;
  const bool is_new = !*known;
  database_options options{on_.log_directory,     on_.files,    is_new, false,
                           on_.options.read_only, buffer_bytes, way_out};
  // A folder that is not complete has acknowledged nothing, and has no identity to lose.
  // It may be called later too, when the database is opened anew.
  const auto was_lost = std::make_shared<bool>(false);
  if (!is_new)
    options.before_loss = [on = &on_, was_lost] {
      *was_lost = true;
      return on->renew_identity();
    };
  auto opened = database::open(std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  if (*was_lost) found_.why_new_identity = damaged;
  on_.database = std::move(*opened);
  return claim(is_new);
}

result<void> store_opening::claim(bool is_new) {
  const auto last = on_.get_fact(keys::opener);
  if (!last) return tl::unexpected(last.error());
  const auto opener = decode_opener(*last);
  if (!opener || (last->empty() && !is_new))
    return fail(error_code::storage_damaged,
                fmt::format("{}: who opened it last is unreadable; {}", on_.log_directory, way_out));
  found_.last_opener = *opener;
  if (on_.options.read_only) return settle_identity();
  if (*opener > on_.options.opener)
    return fail(error_code::fenced,
                fmt::format("{} was opened by incarnation {}: incarnation {} comes too late",
                            on_.options.directory, *opener, on_.options.opener));
  rocksdb::WriteBatch batch;
  batch.Put(on_.database->handle(table::facts), keys::opener, encode_opener(on_.options.opener));
  if (auto written = on_.database->write(batch, true); !written) return written;
  if (!is_new) return settle_identity();
  // A folder without FORMAT is one whose creation was cut short, so there can be nothing in it.
  const auto records = on_.database->iterate(table::log);
  records->SeekToFirst();
  const auto history = on_.get_fact(keys::history);
  if (records->Valid() || !history || !history->empty())
    return fail(error_code::storage_damaged,
                fmt::format("{} holds data, but its file FORMAT is gone: restore it; or {}",
                            on_.options.directory, way_out));
  return renew("it is new");
}

/// R24: under an identity that says what it holds, and nothing more, from here on.
result<void> store_opening::settle_identity() {
  if (is_renewed()) return {};
  const auto& known = on_.state.identity;
  if (known.under(on_.boot) == 0)
    return renew(known.number == 0 ? "it had none" : "its machine has booted since");
  const bool is_synced = on_.options.sync == sync_mode::power;
  const bool must_be_marked = (!is_synced && known.boot.empty()) || (on_.options.run != 0 && known.run == 0);
  return must_be_marked && !on_.options.read_only ? on_.keep_identity(known.boot.empty() && is_synced)
                                                  : result<void>();
}

result<void> store_opening::load_facts() {
  for (const auto& line : on_.database->dropped()) note_damage(line);
  const auto history = on_.get_fact(keys::history);
  const auto floor = on_.get_fact(keys::floor);
  if (!history) return tl::unexpected(history.error());
  if (!floor) return tl::unexpected(floor.error());
  const auto entries = decode_history(*history);
  const auto lowest = decode_floor(*floor);
  if (!entries || !lowest)
    return fail(error_code::storage_damaged,
                fmt::format("{}: its history is unreadable; {}", on_.log_directory, way_out));
  on_.state.history = *entries;
  on_.state.floor = *lowest;
  return {};
}

result<void> store_opening::load_snapshots() {
  const auto there = list_files(*on_.files, on_.snapshot_directory);
  if (!there) return tl::unexpected(there.error());
  std::vector<std::string> kept;
  std::vector<std::string> gone;
  const auto facts = on_.database->iterate(table::facts);
  for (facts->Seek(std::string(keys::snapshot_prefix));
       facts->Valid() && facts->key().starts_with(std::string(keys::snapshot_prefix)); facts->Next()) {
    const auto snapshot = decode_snapshot(facts->key().ToStringView(), facts->value().ToStringView());
    const auto name = snapshot ? snapshot_file_name(snapshot->version, snapshot->timeline) : "?";
    const auto file = std::ranges::find(*there, name, &file_entry::name);
    if (snapshot && file != there->end() && file->bytes == snapshot->file_bytes) {
      on_.state.snapshots.push_back(*snapshot);
      kept.push_back(name);
      continue;
    }
    gone.push_back(facts->key().ToString());
    note_loss(file == there->end()
                  ? fmt::format("{}/{}: there is no such file; the snapshot is dropped",
                                on_.snapshot_directory, name)
                  : fmt::format("{}/{}: it has {} bytes instead of {}; the snapshot is dropped",
                                on_.snapshot_directory, name, file->bytes, snapshot->file_bytes));
  }
  if (auto whole = on_.database->verify(*facts); !whole) return whole;
  if (auto renewed = renew_if_lost(); !renewed) return renewed;
  if (on_.options.read_only) return {};
  for (const auto& key : gone)
    if (auto deleted = delete_fact(key); !deleted) return deleted;
  // Cut short before they counted, or dropped and not yet removed.
  for (const auto& file : *there)
    if (is_snapshot_name(file.name) && std::ranges::find(kept, file.name) == kept.end())
      remove_file(*on_.files, on_.snapshot_directory + "/" + file.name);
  return {};
}

/// A record as RocksDB has it; its payload, if it is in a segment, is not looked at.
store_opening::found_record store_opening::examine(step_id step, std::string_view value) const {
  const auto record = decode_record(step, value);
  found_record found;
  found.step = step;
  if (!record) {
    found.damage = fmt::format("{}: the record of step {} is unreadable", on_.log_directory, step);
  } else if (record->place) {
    found.place = record->place;
    found.payload = {step, record->head.timeline, record->head.payload_bytes, record->payload_crc32c};
  } else if (base::crc32c(record->inlined) != record->payload_crc32c) {
    found.damage = fmt::format("{}: the checksum of step {} is wrong", on_.log_directory, step);
  }
  return found;
}

/// Reads all payloads in segments, with a few threads: a PS shard that comes back waits for this.
void store_opening::verify_payloads(std::vector<found_record>& records) const {
  std::uint64_t bytes = 0;
  for (const auto& record : records) bytes += record.place ? record.payload.bytes : 0;
  const auto threads = std::min<std::uint64_t>(
      {std::thread::hardware_concurrency(), verifying_threads_max, bytes / bytes_worth_a_thread});
  dlrun::detail::parallel_for(records.size(), static_cast<unsigned>(threads), [&] {
    return [&](std::size_t i) {
      auto& record = records[i];
      if (!record.place) return;
      const auto got = on_.segments.verify(*record.place, record.payload);
      if (got) return;
      if (got.error().code == error_code::storage_damaged)
        record.damage = got.error().message;
      else
        record.failure = got.error();
    };
  });
}

result<void> store_opening::load_log() {
  if (auto listed = on_.segments.find_files(); !listed) return listed;
  std::vector<found_record> records;
  const auto stored = on_.database->iterate(table::log);
  for (stored->Seek(keys::of_step(step_from(on_.state.floor))); stored->Valid(); stored->Next()) {
    const auto step = keys::to_step(stored->key().ToStringView());
    if (!step)
      return fail(error_code::storage_damaged,
                  fmt::format("{} holds a key that is no step; {}", on_.log_directory, way_out));
    records.push_back(examine(*step, stored->value().ToStringView()));
  }
  if (auto whole = on_.database->verify(*stored); !whole) return whole;
  verify_payloads(records);
  for (const auto& record : records) {
    if (record.failure) return tl::unexpected(*record.failure);
    if (record.damage.empty())
      on_.state.steps.add(record.step);
    else
      note_loss(fmt::format("{}; step {} is dropped", record.damage, record.step));
  }
  return drop_unreachable(records);
}

/// Replay stops at the first record that is bad or missing (R11a): what is behind it and above
/// every snapshot goes, so that the log goes on where replay ends.
result<void> store_opening::drop_unreachable(const std::vector<found_record>& records) {
  const auto end = next_step_of(on_.state);
  const auto& ranges = on_.state.steps.ranges();
  if (!ranges.empty() && ranges.back().end > end) {
    note_loss(fmt::format("{}: the steps {} to {} are dropped, since steps before them are missing",
                          on_.log_directory, std::max(ranges.back().first, end),
                          ranges.back().end.value - 1));
    on_.state.steps.cut_from(end);
  }
  found_.has_gap = std::ranges::any_of(
      records, [&](const auto& record) { return !record.damage.empty() && record.step < end; });
  if (auto renewed = renew_if_lost(); !renewed) return renewed;
  for (const auto& record : records)
    if (record.place && record.damage.empty() && record.step < end)
      on_.segments.use(record.place->segment, record.step);
  if (on_.options.read_only) return {};
  rocksdb::WriteBatch batch;
  if (auto erased = on_.erase_steps_from(batch, end); !erased) return erased;
  return on_.database->write(batch, false);
}

/// In mode `power` what was found is on disk before anyone hears of it (R11). In mode `process` it
/// counts like what is appended: the operating system has it, and the next sync takes it along. A
/// sync here would keep everybody waiting for all that the last process wrote in its last seconds.
result<void> store_opening::settle() {
  const auto end = next_step_of(on_.state);
  on_.state.synced_end =
      on_.state.snapshots.empty() ? step_id{0} : step_from(on_.state.snapshots.back().version);
  if (!on_.options.read_only) on_.segments.remove_unused();
  if (!on_.options.read_only && on_.options.sync == sync_mode::power) {
    if (auto synced = on_.segments.sync(); !synced) return synced;
    if (auto synced = sync_directory(*on_.files, on_.snapshot_directory); !synced) return synced;
    if (auto synced = on_.database->sync(); !synced) return synced;
    on_.state.synced_end = end;
    if (auto kept = on_.keep_identity(true); !kept) return kept;
  }
  found_.identity = on_.state.identity.number;
  found_.floor = on_.state.floor;
  found_.history = on_.state.history;
  found_.snapshots = on_.state.snapshots;
  found_.log_first = found_.log_end = end;
  if (const auto& ranges = on_.state.steps.ranges(); !ranges.empty() && ranges.back().end == end)
    found_.log_first = ranges.back().first;
  if (damage_left_out_ > 0) found_.damaged.push_back(fmt::format("and {} more", damage_left_out_));
  on_.count_database_bytes(0);
  if (const auto measured = on_.database->bytes_on_disk()) on_.database_bytes = *measured;
  on_.database_bytes_measured = on_.database_bytes.load();
  return {};
}

} // namespace dlrun::persistence
