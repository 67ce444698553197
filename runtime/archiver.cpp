#include "runtime/archiver.hpp"

#include "runtime/archive_gathering.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dlrun::runtime {
namespace {

using seconds = std::chrono::duration<double>;

/// Of `every`, for the bytes of one archive.
constexpr double share_of_time = 0.25;
/// Until there is something, or something new, to archive.
constexpr seconds look_again_after{0.5};
constexpr seconds failed_again_after{60};
/// A part of a snapshot is asked for again, as long as no answer comes in time.
constexpr seconds patience_with_a_part{60};
/// How often the step is noted to which the run has come.
constexpr seconds step_noted_every{5};

std::int64_t unix_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

/// Lets the snapshots go that an archive was made of, or was not made of.
class kept_for_a_while {
public:
  explicit kept_for_a_while(archive_source& source)
      : source_{source} {}
  kept_for_a_while(const kept_for_a_while&) = delete;
  kept_for_a_while& operator=(const kept_for_a_while&) = delete;
  ~kept_for_a_while() { (void)source_.keep({}); } // the next archive lets go what this one could not

private:
  archive_source& source_;
};

tl::unexpected<error> run_has_ended() { return fail(error_code::interrupted, "the run has ended"); }

/// A host is away, a snapshot was dropped, an evaluation is not there yet.
bool may_pass(const error& why) {
  return why.code == error_code::bad_usage || why.code == error_code::role_lost ||
         why.code == error_code::timed_out || why.code == error_code::protocol;
}

} // namespace

archiver::archiver(archiver_options options, std::unique_ptr<archive_source> source)
    : options_{std::move(options)}
    , source_{std::move(source)} {
  thread_ = std::thread{[this] { run(); }};
}

archiver::~archiver() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

agent::archive_view archiver::view() const {
  const std::lock_guard lock{mutex_};
  return view_;
}

/// What an earlier root of this run made: its newest archive, and what it left unfinished, which
/// goes even if this one makes none before the run ends.
void archiver::take_over_folder() {
  const auto own = read_record(options_.run_dir);
  if (!own || !*own || !check_archives_are_of(options_.folder, **own)) return;
  static_cast<void>(remove_unfinished_archives(options_.folder, **own)); // told by the first archive
  const auto all = list_archives(options_.folder);
  if (!all || all->empty()) return;
  const auto record = read_archive_record(all->front().path);
  if (!record) return;
  newest_ = snapshot_name{{record->version()}, {record->timeline()}};
  const std::lock_guard lock{mutex_};
  view_ = {record->version(), record->made_at_us(), {}};
}

/// @returns whether it is over.
bool archiver::wait(seconds time) {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, time, [this] { return is_over_; });
}

void archiver::tell(const char* event, std::string text) const {
  options_.tell({event, {protocol::role_kind::agent, 0}, {1}, std::move(text)});
}

void archiver::run() {
  take_over_folder();
  auto due = clock::now();
  auto step_due = due;
  for (;;) {
    const auto begun = clock::now();
    if (begun >= due) {
      const auto came = try_once();
      if (came == outcome::made) step_due = begun;
      const auto pause = came == outcome::made     ? options_.every
                         : came == outcome::failed ? std::min(options_.every, failed_again_after)
                                                   : look_again_after;
      due = begun + std::chrono::duration_cast<clock::duration>(pause);
    }
    if (clock::now() >= step_due) {
      note_step();
      step_due = clock::now() + std::chrono::duration_cast<clock::duration>(step_noted_every);
    }
    const auto next = std::min(due, step_due);
    if (wait(std::max(seconds{0}, seconds{next - clock::now()}))) return;
  }
}

archiver::outcome archiver::try_once() {
  const auto done = make();
  if (done) late_since_.reset();
  if (done) return *done;
  const auto now = clock::now();
  const auto late = seconds{now - late_since_.value_or(now)};
  if (!late_since_) late_since_ = now;
  if (may_pass(done.error()) && late < std::max(options_.every, failed_again_after)) return outcome::not_yet;
  const std::lock_guard lock{mutex_};
  if (is_over_) return outcome::not_yet;
  const auto& why = done.error().message;
  if (std::exchange(view_.failure, why) != why)
    tell("archive-failed",
         fmt::format("no archive is made, and training goes on: {}; it is tried again", why));
  return outcome::failed;
}

result<archiver::outcome> archiver::make() {
  const kept_for_a_while kept{*source_};
  auto gathered = gather_archive(*source_, options_.evaluated, newest_);
  if (!gathered) return tl::unexpected(gathered.error());
  if (!*gathered) return outcome::nothing_new;
  auto& [chosen, bytes, journal] = **gathered;
  const auto record = read_record(options_.run_dir);
  if (!record) return tl::unexpected(record.error());
  if (!*record) return fail(error_code::system, "the run has no record");
  records::ArchiveRecord about;
  *about.mutable_record() = **record;
  about.set_version(chosen.back().version.value);
  about.set_timeline(chosen.back().timeline.value);
  about.set_coordinator(journal.coordinator);
  about.set_opener(journal.opener);
  for (auto& [key, value] : journal.entries) (*about.mutable_journal())[key] = std::move(value);
  if (auto written = write(std::move(about), chosen, bytes); !written) return tl::unexpected(written.error());
  return outcome::made;
}

result<void> archiver::write(records::ArchiveRecord about, const std::vector<snapshot_name>& chosen,
                             std::uint64_t bytes) {
  auto writer = archive_writer::begin(options_.folder, about.record());
  if (!writer && writer.error().code == error_code::bad_usage) // another run goes on from there
    return fail(error_code::fenced, writer.error().message);
  if (!writer) return tl::unexpected(writer.error());
  if (auto copied = copy(*writer, chosen, bytes); !copied) return copied;
  about.set_made_at_us(unix_us());
  if (auto finished = writer->finish(about); !finished) return finished;
  {
    const std::lock_guard lock{mutex_};
    view_ = {about.version(), about.made_at_us(), {}};
  }
  newest_ = chosen.back();
  tell("archived", fmt::format("version {}, {:.1f} MB, in '{}'", about.version(),
                               static_cast<double>(writer->bytes()) / 1e6, options_.folder.string()));
  if (const auto removed = writer->remove_older(); !removed)
    tell("archive-stays", fmt::format("the archives before the last two are not all removed: {}; it is tried "
                                      "again with the next one",
                                      removed.error().message));
  return {};
}

/// One answer that is late does not void what was copied so far. A host that is lost meanwhile is
/// known to be so by the end of the patience.
result<std::string> archiver::read(ps_shard_id shard, const snapshot_name& name, std::uint64_t offset) {
  const auto begun = clock::now();
  for (;;) {
    auto part = source_->read(shard, name, offset);
    const bool is_late = !part && part.error().code == error_code::timed_out;
    if (!is_late || clock::now() - begun >= patience_with_a_part) return part;
    if (wait(look_again_after)) return run_has_ended();
  }
}

/// Spread over its share of the time, however fast disk and network are.
result<void> archiver::copy(archive_writer& writer, const std::vector<snapshot_name>& chosen,
                            std::uint64_t bytes) {
  const auto begun = clock::now();
  const auto time = share_of_time * options_.every;
  for (std::uint32_t shard = 0; shard < options_.ps_shards; ++shard)
    for (const auto& name : chosen) {
      if (auto made = writer.begin_snapshot({shard}, name); !made) return made;
      for (std::uint64_t offset = 0;;) {
        const auto part = read({shard}, name, offset);
        if (!part) return tl::unexpected(part.error());
        if (part->empty()) break;
        if (auto written = writer.write(*part); !written) return written;
        offset += part->size();
        const auto share =
            static_cast<double>(writer.bytes()) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
        const auto ahead = std::min(share, 1.0) * time - seconds{clock::now() - begun};
        if (wait(std::max(seconds{0}, ahead))) return run_has_ended();
      }
      if (auto whole = writer.end_snapshot(); !whole) return whole;
    }
  return {};
}

/// What is lost with everything else, for the report of a run that goes on from an archive.
void archiver::note_step() {
  const auto step = options_.step();
  if (!newest_ || step == noted_step_) return;
  const auto record = read_record(options_.run_dir);
  if (record && *record && note_step_reached(options_.folder, (*record)->run(), step)) noted_step_ = step;
}

} // namespace dlrun::runtime
