/// shard_store: the state of a PS shard that outlives its process.
#pragma once

#include "base/version_set.hpp"
#include "persistence/file_system.hpp"
#include "persistence/log_record.hpp"
#include "persistence/snapshot_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlrun::persistence {

/// What a record survives when append() has returned.
enum class sync_mode : std::uint8_t {
  /// The death of every process (kill -9): the operating system has the record.
  process,
  /// A power cut too: append() ends with a sync.
  power,
};

struct shard_store_options {
  /// Holds FORMAT, log/, segments/, snapshots/; created when missing. Nobody else may write there.
  std::string directory;
  /// Number of the run that the store is to be of; 0: whatever is there will do.
  std::uint64_t run = 0;
  /// Incarnation of the PS shard that opens. Refused if a higher one has opened the store (R4).
  incarnation opener;
  /// Null: the operating system's.
  std::shared_ptr<file_system> files;
  /// Id of the machine's boot, for tests; "": ask the kernel.
  std::string boot{};
  sync_mode sync = sync_mode::process;
  /// Opens for a look, while nobody else has the store open: writes, creates and removes nothing,
  /// and needs no `opener`. Only calls that do not change the store are allowed.
  bool read_only = false;
  /// Most bytes that the directory may take; 0: no limit.
  std::uint64_t disk_quota_bytes = 0;
  /// A segment file is closed and the next begun when it reaches this. Larger: fewer files, but
  /// space comes back later after drop_below. A record that is larger gets a file of its own.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// RocksDB holds payloads up to this size, segments hold larger ones. Above 64 KiB RocksDB writes
  /// more slowly.
  std::size_t inline_bytes_max = std::size_t{64} << 10;
};

/// What open() found.
struct store_contents {
  /// Incarnation that opened the store last; 0 for a new store.
  incarnation last_opener;
  /// Why this opening gave the store another identity, for people; "" when it did not. A look gives
  /// none, and then reports the identity 0.
  std::string why_new_identity;
  /// As shard_store::identity() and floor().
  std::uint64_t identity = 0;
  version_id floor;
  /// In the order of timelines; empty before the first rewind.
  std::vector<history_entry> history;
  /// The records [log_first, log_end) are there without a gap. Equal when there are none.
  step_id log_first;
  step_id log_end;
  /// The log lacks an unreadable record, and continues above a later snapshot: no append can fill
  /// the gap.
  bool has_gap = false;
  /// In the order of versions. Their contents are verified when they are read.
  std::vector<snapshot_info> snapshots;
  /// One line for each thing that was dropped because it was torn or damaged: file, offset, why. A
  /// torn tail is normal after a crash, and holds nothing that was synced unless the disk lost it.
  std::vector<std::string> damaged;
};

struct store_counters {
  /// Payload bytes appended since open.
  std::uint64_t bytes_logged = 0;
  /// Bytes of the snapshots taken since open.
  std::uint64_t bytes_snapshotted = 0;
  /// Bytes of the files of all present snapshots.
  std::uint64_t bytes_in_snapshots = 0;
  /// Bytes of everything in the directory; an estimate for RocksDB's own files.
  std::uint64_t bytes_on_disk = 0;
};

class snapshot_writer;
class segment_reader;

/// Reads the payload of one record in parts: a caller that works block by block needs no memory for
/// all of it, and finds each block in the cache. Thread-safe. If the record is cut off meanwhile it
/// may read other bytes, which check() tells. Must not outlive its store.
class payload_reader {
public:
  /// For a payload that RocksDB holds, in `log_directory`.
  payload_reader(record_head head, std::uint32_t crc32c, std::string inlined, std::string log_directory);
  payload_reader(record_head head, std::uint32_t crc32c, std::shared_ptr<const segment_reader> file,
                 std::uint64_t offset);

  const record_head& head() const { return head_; }
  /// Fills `into` with the payload's bytes from `offset` on; the payload must be that long.
  /// @returns their CRC32C.
  result<std::uint32_t> read(std::uint64_t offset, std::span<std::byte> into) const;
  /// Compares `crc32c`, of the whole payload, with the stored one. @returns storage_damaged, naming
  /// the place.
  result<void> check(std::uint32_t crc32c) const;

private:
  record_head head_;
  std::uint32_t crc32c_;
  std::string inlined_;
  std::string log_directory_;
  std::shared_ptr<const segment_reader> file_; ///< null for what is inlined
  std::uint64_t offset_ = 0;
};

/// The log of record, the snapshots and the history of one PS shard.
/// Formats: docs/formats.md.
///
/// Errors: disk_full (no space), limit_exceeded (the quota), system (the operating system refused
/// something), storage_damaged (bytes that are not what was written), fenced. Each names path and
/// size. After a failed append nothing of it is there, and it can be tried again. After a failed
/// *sync* every later write fails: what the disk holds is unknown until the store is opened again.
/// Broken order is a broken invariant (DLRUN_CHECK).
///
/// Threads: append(), rewind(), drop_below() and discard_snapshot() belong to one thread at a time.
/// All other functions, and all of snapshot_writer and snapshot_reader, may be called from any
/// thread at the same time. All of them block, up to tens of milliseconds and more when the disk is
/// busy.
class shard_store {
public:
  /// Opens or creates a store. First writes the opener's incarnation, synced; then reads everything
  /// and drops what is torn or damaged. The rest is synced at once in mode `power` (R11), by the
  /// next sync in mode `process`. A store that may lack something that it has acknowledged gets
  /// another identity before anything is dropped (R24).
  /// @returns in_use while another live process (or another store of this one) holds it: try again;
  /// fenced when a higher incarnation has opened it; storage_damaged when it cannot be read at all
  /// or has another format; for a look, bad_usage when there is no store.
  static result<std::unique_ptr<shard_store>> open(const shard_store_options& options);

  shard_store(const shard_store&) = delete;
  shard_store& operator=(const shard_store&) = delete;
  /// No snapshot_writer may be left. Syncs nothing.
  ~shard_store();

  const store_contents& found() const;

  /// The random number that identifies the store, not 0. 0 in a look when the next opening would
  /// make another one (R24).
  std::uint64_t identity() const;
  /// Gives the store another identity, durable when it returns: the coordinator has found that the
  /// store lacks what it has acknowledged. For the thread that appends.
  result<void> renew_identity();
  /// Log and snapshots below this version may have been dropped (R13).
  version_id floor() const;

  /// Appends records in step order, all or none of them, as one write: the first must be of
  /// next_step(). Durable as options.sync says when it returns. Records of a timeline below the
  /// newest one are a broken invariant.
  result<void> append(std::span<const log_record> records);

  /// The step that append() takes next: the log's end, or the newest snapshot's version if that is
  /// above it. Also the newest version that can be restored.
  step_id next_step() const;

  /// Makes all that was found or appended survive a power cut: segments first, then RocksDB's log.
  /// @returns the log's end as it was when the call began.
  result<step_id> sync();
  /// The records of all steps below this one are synced.
  step_id synced_end() const;

  /// @returns storage_damaged when the checksum is wrong, bad_usage when there is no such record.
  result<stored_record> read(step_id step) const;
  /// For reading the payload in parts. @returns storage_damaged when the stored head is not that of
  /// the record, bad_usage when there is no such record.
  result<payload_reader> open_payload(step_id step) const;
  /// The record without its payload, from RocksDB alone: what a lagging shard asks for (R12).
  result<record_head> read_head(step_id step) const;

  /// Begins a snapshot of `version`, which must not exist. It counts when commit() has returned.
  /// While another one is being written that began on this timeline, the lower version is committed
  /// or abandoned first (R11). A snapshot above the log's end lets the log go on at its version
  /// (mode `snapshots`).
  result<snapshot_writer> begin_snapshot(version_id version, timeline_id timeline);
  /// All snapshots that count, in the order of versions.
  std::vector<snapshot_info> snapshots() const;
  /// @returns storage_damaged, naming file and offset, when what frames the file is damaged;
  /// bad_usage when there is no such snapshot. Damage in the middle is found when it is read.
  result<snapshot_reader> open_snapshot(version_id version) const;
  /// Drops a damaged snapshot, synced, so that an older one is used.
  result<void> discard_snapshot(version_id version);

  /// The history, in the order of timelines.
  std::vector<history_entry> history() const;
  /// Goes back to `to`, which must be restorable: in one synced write it records `history`, whose
  /// last entry is the new timeline, and drops log and snapshots above `to` (R16). `to` is the
  /// lowest branch that this shard has not taken yet, not always that of the last entry. Snapshots
  /// in the making are void: their commit() says fenced. A repetition, known by its history,
  /// changes nothing.
  /// @returns bad_usage when `to` cannot be restored here, fenced when the store is on that
  /// timeline or a later one.
  result<void> rewind(std::span<const history_entry> history, version_id to);

  /// Drops, synced, the snapshots below `floor`, but for that of version `kept`, and the log below
  /// step `floor` (R13). If there is no snapshot of version `floor`, the newest one below it takes
  /// its place, so that what can be restored above `floor` remains so.
  result<void> drop_below(version_id floor, std::optional<version_id> kept = std::nullopt);

  /// What can be rebuilt from here, sorted and disjoint: version 0 without storage, every snapshot,
  /// and from each of them as far as the log has no gap.
  std::vector<base::version_range> restorable() const;
  /// From `first` to `last` the log leads, step by step. Ascending; two may touch, where a record
  /// is missing that a snapshot bridges.
  std::vector<base::version_range> logged() const;

  store_counters counters() const;

private:
  friend class snapshot_writer;
  struct implementation;
  explicit shard_store(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

/// Writes one snapshot, from any one thread, beside appends. If it is destroyed without commit(),
/// nothing is left of the snapshot. Must not outlive its store.
class snapshot_writer {
public:
  using verifier = std::function<result<void>(result<snapshot_reader> written)>;

  snapshot_writer(snapshot_writer&& other) noexcept;
  snapshot_writer& operator=(snapshot_writer&& other) noexcept;
  ~snapshot_writer();

  /// Appends to the snapshot. After an error the snapshot is abandoned.
  result<void> write(std::span<const std::byte> bytes);

  /// Makes it durable: fsync, rename, fsync of the directory, sync of the log up to it, and then
  /// its entry in RocksDB, synced. snapshot_reader::metadata() gives `metadata` (at most 16 MiB)
  /// back. The writer must not be used again.
  /// @param verify reads back from the file what was written, and says whether it may count
  /// @returns fenced if the store was rewound meanwhile; what `verify` returns.
  result<snapshot_info> commit(std::span<const std::byte> metadata, const verifier& verify = {});

private:
  friend class shard_store;
  struct state;
  explicit snapshot_writer(std::unique_ptr<state> state);

  std::unique_ptr<state> state_;
};

} // namespace dlrun::persistence
