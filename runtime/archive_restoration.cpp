#include "runtime/archive_restoration.hpp"

#include "actors/common/history_conversion.hpp"
#include "base/atomic_file.hpp"
#include "base/random.hpp"
#include "job/run_layout.hpp"
#include "persistence/folder_journal.hpp"
#include "persistence/shard_store.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t copied_at_a_time = std::size_t{1} << 20;

result<void> copy_snapshot(const std::filesystem::path& file, const records::ArchivedSnapshot& what,
                           persistence::shard_store& store) {
  auto reader = persistence::snapshot_reader::open(persistence::default_file_system(), file.string());
  if (!reader) return tl::unexpected(reader.error());
  auto writer = store.begin_snapshot({what.version()}, {what.timeline()});
  if (!writer) return tl::unexpected(writer.error());
  std::vector<std::byte> chunk(copied_at_a_time);
  for (;;) {
    const auto had = reader->read(chunk);
    if (!had) return tl::unexpected(had.error());
    if (auto written = writer->write(std::span{chunk}.first(*had)); !written) return written;
    if (*had < chunk.size()) break;
  }
  const auto done = writer->commit(reader->metadata());
  return done ? result<void>{} : tl::unexpected(done.error());
}

/// A store of the new run, on its newest timeline.
result<void> make_store(const whole_archive& archive, const continued_run& run, std::uint64_t number,
                        ps_shard_id shard, const std::filesystem::path& run_dir) {
  auto store = persistence::shard_store::open({.directory = common::store_directory(run_dir, shard).string(),
                                               .run = number,
                                               .opener = run.opener,
                                               .files = nullptr});
  if (!store) return tl::unexpected(store.error());
  for (const auto& one : archive.record.snapshots()) // ascending
    if (one.shard() == shard.value)
      if (auto copied = copy_snapshot(archive.place.path / archived_file_name(one), one, **store); !copied)
        return copied;
  return (*store)->rewind(common::history_to_store(run.history), {archive.record.version()});
}

result<void> make_journal(const continued_run& run, const std::filesystem::path& run_dir) {
  auto journal = persistence::folder_journal::open(
      {.directory = (run_dir / run_layout::journal).string(), .owner = run.coordinator, .files = nullptr});
  if (!journal) return tl::unexpected(journal.error());
  std::vector<persistence::journal_write> writes;
  for (const auto& [key, value] : run.journal) writes.push_back({key, value});
  return (*journal)->write(writes);
}

/// Hosts of the lost run are none of this one.
records::RunRecord record_of_its_own(const records::RunRecord& lost) {
  auto record = lost;
  record.add_earlier_runs(lost.run());
  record.set_run(base::random_number());
  record.clear_hosts();
  record.clear_drains();
  return record;
}

result<void> fill(const whole_archive& archive, const std::filesystem::path& run_dir) {
  const auto marker = run_dir / run_layout::restoring;
  if (auto begun = base::write_file_atomically(marker, ""); !begun) return begun;
  const auto reached = step_reached(archive.place.path.parent_path(), archive.place.run);
  const auto run = continue_from(archive.record, reached);
  if (!run) return tl::unexpected(run.error());
  const auto record = record_of_its_own(archive.record.record());
  const auto ps_shards = static_cast<std::uint32_t>(record.revisions().rbegin()->cluster().ps_shards());
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value)
    if (auto made = make_store(archive, *run, record.run(), shard, run_dir); !made) return made;
  if (auto made = make_journal(*run, run_dir); !made) return made;
  if (auto written = write_record(run_dir, record); !written) return written;
  std::error_code ignored; // with a record beside it, it says nothing
  std::filesystem::remove(marker, ignored);
  return {};
}

/// One that cannot be read now is not passed over: the run would lose what an older one lacks.
error may_be_whole(const archive_place& place, const error& why) {
  return {why.code, fmt::format("archive '{}' cannot be read, and may be whole, so no older one is used: try "
                                "again, or move it away to go on from the one before: {}",
                                place.path.string(), why.message)};
}

} // namespace

result<std::optional<whole_archive>> find_whole_archive(const std::filesystem::path& folder) {
  const auto all = list_archives(folder);
  if (!all) return tl::unexpected(all.error());
  std::vector<std::string> damaged;
  for (const auto& place : *all) {
    auto record = read_archive_record(place.path);
    const auto whole =
        record ? check_archived_snapshots(place.path, *record) : tl::unexpected(record.error());
    if (whole) return whole_archive{place, std::move(*record), std::move(damaged)};
    if (whole.error().code == error_code::system) return tl::unexpected(may_be_whole(place, whole.error()));
    if (whole.error().code != error_code::storage_damaged) return tl::unexpected(whole.error());
    damaged.push_back(whole.error().message);
  }
  if (damaged.empty()) return std::nullopt;
  return fail(error_code::storage_damaged,
              fmt::format("no archive in '{}' can be used: {}", folder.string(), fmt::join(damaged, "; ")));
}

result<run_folder> restore_run(const whole_archive& archive, const std::filesystem::path& run_dir) {
  auto folder =
      run_folder::create(run_dir.string(), archive.record.record().revisions(0), torn_beginning::removed);
  if (!folder) return folder;
  const auto filled = fill(archive, folder->path());
  if (filled) return folder;
  folder->abandon();
  return tl::unexpected(filled.error());
}

std::string tell_restored(const whole_archive& archive) {
  auto text =
      fmt::format("goes on from version {} of archive '{}'; what was trained after it is trained again",
                  archive.record.version(), archive.place.path.string());
  if (!archive.damaged.empty())
    text += fmt::format("; newer archives cannot be used: {}", fmt::join(archive.damaged, "; "));
  return text;
}

} // namespace dlrun::runtime
