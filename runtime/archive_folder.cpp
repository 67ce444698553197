#include "runtime/archive_folder.hpp"

#include "actors/agent/file_failure.hpp"
#include "base/atomic_file.hpp"
#include "base/hex.hpp"
#include "base/read_at.hpp"
#include "base/write_all.hpp"
#include "persistence/snapshot_file.hpp"
#include "persistence/snapshot_reader.hpp"
#include "runtime/digested_message.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr auto record_file = "archive.record";
constexpr std::string_view archive_word = "dlrun-archive ";
constexpr std::string_view archive_head = "dlrun-archive 1 ";
constexpr auto part_ending = ".part";
constexpr std::size_t kept_archives = 2;
constexpr std::size_t read_at_a_time = std::size_t{1} << 16;
constexpr mode_t archived_file_mode = 0644;
constexpr std::size_t number_digits = 6;
constexpr std::size_t run_digits = 16;

std::string archive_name(std::uint64_t number, std::uint64_t run) {
  return fmt::format("{:0{}}-{:0{}x}", number, number_digits, run, run_digits);
}

std::optional<archive_place> archive_at(const fs::path& path) {
  const auto name = path.filename().string();
  archive_place found{.path = path};
  const auto* const end = name.data() + name.size();
  const auto number = std::from_chars(name.data(), end, found.number);
  if (number.ec != std::errc{} || number.ptr == end) return std::nullopt;
  if (std::from_chars(number.ptr + 1, end, found.run, 16).ec != std::errc{}) return std::nullopt;
  if (archive_name(found.number, found.run) != name) return std::nullopt;
  return found;
}

bool is_of(const records::RunRecord& record, std::uint64_t run) {
  return run == record.run() || std::ranges::find(record.earlier_runs(), run) != record.earlier_runs().end();
}

tl::unexpected<error> damaged(const fs::path& file, std::string_view how) {
  return fail(error_code::storage_damaged, fmt::format("'{}' is damaged: {}", file.string(), how));
}

/// What was lost from a folder, unlike what the operating system does not give now.
bool is_lost(const std::error_code& why) {
  return why == std::errc::no_such_file_or_directory || why == std::errc::not_a_directory;
}

/// @returns storage_damaged for a file that is not there, system for one that cannot be read.
result<std::string> read_whole(const fs::path& file) {
  const base::unique_fd opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!opened && is_lost({errno, std::generic_category()})) return damaged(file, "it is not there");
  if (!opened) return agent::fail_to("read", file);
  std::string bytes;
  for (std::size_t had = 0;;) {
    bytes.resize(had + read_at_a_time);
    const auto more = base::read_at(opened.get(), std::as_writable_bytes(std::span{bytes}.subspan(had)), had);
    if (!more) return agent::fail_to("read", file);
    had += *more;
    if (had == bytes.size()) continue;
    bytes.resize(had);
    return bytes;
  }
}

/// @returns storage_damaged for another size, system for one that nobody can tell.
result<void> check_size(const fs::path& file, std::uint64_t bytes) {
  std::error_code why;
  const auto size = fs::file_size(file, why);
  if (why && !is_lost(why))
    return fail(error_code::system, fmt::format("cannot look at {}: {}", file.string(), why.message()));
  if (why || size != bytes) return damaged(file, fmt::format("it has not the {} bytes that it had", bytes));
  return {};
}

result<void> sync_folder(const fs::path& folder) {
  const base::unique_fd opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL))
    return agent::fail_to("make durable", folder);
  return {};
}

/// Another format has another number in the first line.
result<void> check_format(const fs::path& file, std::string_view bytes) {
  unsigned number = 0;
  if (!bytes.starts_with(archive_word)) return damaged(file, "it does not begin as it should");
  const auto rest = bytes.substr(archive_word.size());
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (read.ec != std::errc{}) return damaged(file, "it does not begin as it should");
  if (number == 1) return {};
  return fail(error_code::bad_usage,
              fmt::format("'{}' has format {}, and this dlrun reads format 1: use the version of dlrun that "
                          "made the archive",
                          file.string(), number));
}

/// @returns nothing for a folder that is not there.
result<void> each_in(const fs::path& folder, const std::function<void(const fs::path&)>& take) {
  std::error_code why;
  if (!fs::exists(folder, why) && !why) return {};
  for (fs::directory_iterator at{folder, why}; !why && at != end(at); at.increment(why)) take(at->path());
  if (!why) return {};
  return fail(error_code::system,
              fmt::format("cannot look into the archive folder '{}': {}", folder.string(), why.message()));
}

result<void> remove_archive(const fs::path& archive) {
  // Without its name it does not count any more, whatever is left of it.
  const auto gone = archive.string() + part_ending;
  if (::rename(archive.c_str(), gone.c_str()) != 0) return agent::fail_to("remove", archive);
  std::error_code why;
  fs::remove_all(gone, why);
  if (!why) return {};
  return fail(error_code::system, fmt::format("cannot remove '{}': {}", gone, why.message()));
}

fs::path step_file(const fs::path& folder, std::uint64_t run) {
  return folder / fmt::format("{:0{}x}.step", run, run_digits);
}

} // namespace

result<std::vector<archive_place>> list_archives(const fs::path& folder) {
  std::vector<archive_place> all;
  const auto done = each_in(folder, [&](const fs::path& path) {
    if (auto found = archive_at(path)) all.push_back(std::move(*found));
  });
  if (!done) return tl::unexpected(done.error());
  // Of two roots that made one at the same moment, all see the same as the newest.
  std::ranges::sort(all, std::greater{}, [](const auto& one) { return std::pair(one.number, one.run); });
  return all;
}

std::string archived_file_name(const records::ArchivedSnapshot& snapshot) {
  return fmt::format("ps_shard-{}.{}", snapshot.shard(),
                     persistence::snapshot_file_name({snapshot.version()}, {snapshot.timeline()}));
}

result<records::ArchiveRecord> read_archive_record(const fs::path& archive) {
  const auto file = archive / record_file;
  const auto bytes = read_whole(file);
  if (!bytes) return tl::unexpected(bytes.error());
  if (auto known = check_format(file, *bytes); !known) return tl::unexpected(known.error());
  records::ArchiveRecord record;
  if (!parse_digested(archive_head, *bytes, record)) return damaged(file, "it is not what was written");
  for (const auto& one : record.snapshots())
    if (auto fine = check_size(archive / archived_file_name(one), one.bytes()); !fine)
      return tl::unexpected(fine.error());
  return record;
}

result<void> check_archived_snapshots(const fs::path& archive, const records::ArchiveRecord& record) {
  for (const auto& one : record.snapshots()) {
    const auto path = archive / archived_file_name(one);
    const base::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) return agent::fail_to("read", path);
    const auto digest = base::sha256_of_file(file.get(), path.string());
    if (!digest) return tl::unexpected(digest.error());
    if (*digest != one.sha256()) return damaged(path, "it is not what was written");
  }
  return {};
}

result<void> check_archives_are_of(const fs::path& folder, const records::RunRecord& record) {
  const auto all = list_archives(folder);
  if (!all) return tl::unexpected(all.error());
  if (all->empty() || is_of(record, all->front().run)) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("durability.archive.folder: the newest archive in '{}', {}, is of another run: name "
                  "another folder, or go on from it with --from-archive",
                  folder.string(), all->front().path.filename().string()));
}

result<void> remove_unfinished_archives(const fs::path& folder, const records::RunRecord& record) {
  std::vector<fs::path> left;
  auto looked = each_in(folder, [&](const fs::path& path) {
    const auto whole =
        path.extension() == part_ending ? archive_at(fs::path{path}.replace_extension()) : std::nullopt;
    if (whole && is_of(record, whole->run)) left.push_back(path);
  });
  std::error_code ignored; // it does not count, and the next archive tries it again
  for (const auto& path : left) fs::remove_all(path, ignored);
  return looked;
}

std::uint64_t step_reached(const fs::path& folder, std::uint64_t run) {
  std::uint64_t step = 0;
  std::ifstream in{step_file(folder, run)};
  return in >> step ? step : 0;
}

result<void> note_step_reached(const fs::path& folder, std::uint64_t run, std::uint64_t step) {
  const auto file = step_file(folder, run);
  const auto part = file.string() + part_ending;
  const base::unique_fd made{
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, archived_file_mode)};
  if (!made || !base::write_all(made.get(), fmt::format("{}\n", step)) ||
      ::rename(part.c_str(), file.c_str()) != 0)
    return agent::fail_to("write", file);
  return {};
}

archive_writer::archive_writer(fs::path folder, records::RunRecord record, std::uint64_t number)
    : folder_{std::move(folder)}
    , of_{std::move(record)}
    , place_{folder_ / archive_name(number, of_.run())} {}

result<archive_writer> archive_writer::begin(const fs::path& folder, const records::RunRecord& record) {
  std::error_code why;
  fs::create_directories(folder, why);
  if (auto own = check_archives_are_of(folder, record); !own) return tl::unexpected(own.error());
  const auto all = list_archives(folder);
  if (!all) return tl::unexpected(all.error());
  if (auto removed = remove_unfinished_archives(folder, record); !removed)
    return tl::unexpected(removed.error());
  archive_writer made{folder, record, all->empty() ? 1 : all->front().number + 1};
  if (::mkdir(made.part().c_str(), 0755) != 0) return agent::fail_to("make", made.part());
  return made;
}

archive_writer::~archive_writer() {
  if (place_.empty()) return; // moved from
  std::error_code ignored;
  fs::remove_all(part(), ignored);
}

result<void> archive_writer::begin_snapshot(ps_shard_id shard, const snapshot_name& name) {
  records::ArchivedSnapshot one;
  one.set_shard(shard.value);
  one.set_version(name.version.value);
  one.set_timeline(name.timeline.value);
  const auto path = part() / archived_file_name(one);
  file_ = base::unique_fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, archived_file_mode)};
  if (!file_) return agent::fail_to("make", path);
  digest_.emplace();
  snapshots_.push_back(std::move(one));
  return {};
}

result<void> archive_writer::write(std::string_view bytes) {
  auto& one = snapshots_.back();
  if (!base::write_all(file_.get(), bytes)) return agent::fail_to("write", part() / archived_file_name(one));
  digest_->add(std::as_bytes(std::span{bytes}));
  one.set_bytes(one.bytes() + bytes.size());
  bytes_ += bytes.size();
  return {};
}

result<void> archive_writer::end_snapshot() {
  auto& one = snapshots_.back();
  const auto path = part() / archived_file_name(one);
  if (::fsync(file_.get()) != 0) return agent::fail_to("make durable", path);
  file_ = base::unique_fd{};
  const auto digest = digest_->finish();
  one.set_sha256(base::to_hex(std::as_bytes(std::span{digest})));
  auto reader = persistence::snapshot_reader::open(persistence::default_file_system(), path.string());
  if (!reader) return tl::unexpected(reader.error());
  if (reader->info().version.value != one.version() || reader->info().timeline.value != one.timeline())
    return damaged(path, "it is another snapshot");
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (;;) {
    const auto had = reader->read(chunk);
    if (!had) return tl::unexpected(had.error());
    if (*had < chunk.size()) return {};
  }
}

result<void> archive_writer::finish(records::ArchiveRecord record) {
  record.mutable_snapshots()->Assign(snapshots_.begin(), snapshots_.end());
  if (auto written = base::write_file_atomically(part() / record_file, digested(archive_head, record));
      !written)
    return written;
  if (auto synced = sync_folder(part()); !synced) return synced;
  if (::rename(part().c_str(), place_.c_str()) != 0) return agent::fail_to("give its name to", part());
  return sync_folder(folder_);
}

result<void> archive_writer::remove_older() const {
  auto all = list_archives(folder_);
  if (!all) return tl::unexpected(all.error());
  std::erase_if(*all, [&](const auto& one) { return !is_of(of_, one.run); });
  result<void> done;
  for (std::size_t i = kept_archives; i < all->size(); ++i)
    if (auto removed = remove_archive((*all)[i].path); !removed && done) done = std::move(removed);
  return done;
}

} // namespace dlrun::runtime
