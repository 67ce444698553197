#include "runtime/archive_content.hpp"

#include "actors/data_dispatcher/course_journal.hpp"
#include "persistence/snapshot_file.hpp"
#include "proto/journal_records.pb.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// As after the loss of a journal (R20).
constexpr std::uint64_t timelines_beyond = 1000;
constexpr std::uint64_t incarnations_beyond = std::uint64_t{1} << 32;
constexpr std::string_view role_prefix = "role/";
/// Entries that say the same of a run that goes on. All others are of its stores and starts.
constexpr std::array<std::string_view, 7> kept_prefixes{"workers", "recovery/", "rewind/",  "older/",
                                                        "run/",    "tally/",    "progress/"};

std::string tell(const snapshot_name& what) {
  return fmt::format("version {} of timeline {}", what.version, what.timeline);
}

/// Was it left before it was made, as far as this history says?
bool is_on(const protocol::history& history, const snapshot_name& what) {
  const bool is_known =
      std::ranges::find(history, what.timeline, &protocol::timeline_entry::timeline) != history.end();
  return is_known && protocol::branched_since(history, what.timeline).value_or(what.version) >= what.version;
}

result<void> note_issued(const journal_entries& journal, archived_journal& made) {
  for (auto one = journal.lower_bound(std::string{role_prefix});
       one != journal.end() && one->first.starts_with(role_prefix); ++one) {
    records::JournalRole role;
    if (!role.ParseFromString(one->second))
      return fail(error_code::storage_damaged,
                  fmt::format("the entry '{}' of the journal cannot be read", one->first));
    auto& highest = role.kind() == static_cast<std::uint32_t>(protocol::role_kind::coordinator)
                        ? made.coordinator
                        : made.opener;
    highest = std::max(highest, role.last_issued());
  }
  return {};
}

void put(const std::vector<persistence::journal_write>& writes, journal_entries& into) {
  persistence::apply(writes, into);
}

} // namespace

std::optional<snapshot_name> snapshot_named(std::string_view file) {
  snapshot_name found;
  const auto* const end = file.data() + file.size();
  const auto version = std::from_chars(file.data(), end, found.version.value);
  if (version.ec != std::errc{} || version.ptr == end) return std::nullopt;
  if (std::from_chars(version.ptr + 1, end, found.timeline.value).ec != std::errc{}) return std::nullopt;
  if (persistence::snapshot_file_name(found.version, found.timeline) != file) return std::nullopt;
  return found;
}

std::vector<snapshot_name> choose_archived(const std::vector<stored_snapshots>& of_shards,
                                           const std::set<version_id>& evaluated, archive_bug bug) {
  if (of_shards.empty()) return {};
  std::vector<snapshot_name> chosen;
  for (const auto& entry : of_shards.front()) {
    const auto& one = entry.first;
    if (!std::ranges::all_of(of_shards, [&](const auto& its) { return its.contains(one); })) continue;
    // Of one version that was made twice, the one of the later timeline is not on one that was
    // left.
    if (!chosen.empty() && chosen.back().version == one.version) chosen.pop_back();
    chosen.push_back(one);
  }
  if (chosen.empty()) return chosen;
  const auto newest = chosen.back();
  const bool is_alone = is_planted(bug, archive_bug::newest_alone);
  std::erase_if(chosen, [&](const auto& one) {
    return one != newest && (is_alone || !evaluated.contains(one.version));
  });
  return chosen;
}

result<archived_journal> archive_journal(const journal_entries& journal,
                                         const std::vector<snapshot_name>& chosen,
                                         const std::set<version_id>& evaluated, archive_bug bug) {
  DLRUN_CHECK(!chosen.empty(), "an archive has a version to go on from");
  const auto version = chosen.back().version;
  auto course = data_dispatcher::read_course(journal);
  if (!course) return tl::unexpected(course.error());
  if (course->lost) return fail(error_code::bad_usage, "the journal is older than the training");
  for (const auto& one : chosen)
    if (!is_on(course->history, one) && !is_planted(bug, archive_bug::left_timeline))
      return fail(error_code::bad_usage, fmt::format("{} was left", tell(one)));
  if (!is_planted(bug, archive_bug::later_results))
    std::erase_if(course->evaluations, [&](const auto& one) { return one.version > version; });
  const auto newest = course->evaluations.empty() ? version_id{} : course->evaluations.back().version;
  for (const auto due : evaluated) {
    const bool is_awaited = newest < due && due <= version && !is_planted(bug, archive_bug::journal_first);
    if (is_awaited && std::ranges::find(chosen, due, &snapshot_name::version) == chosen.end())
      return fail(error_code::bad_usage,
                  fmt::format("version {} is not evaluated, and not all PS shards have its snapshot", due));
  }
  archived_journal made;
  if (auto noted = note_issued(journal, made); !noted) return tl::unexpected(noted.error());
  for (const auto& entry : journal)
    if (std::ranges::any_of(kept_prefixes, [&](auto prefix) { return entry.first.starts_with(prefix); }))
      made.entries.insert_or_assign(entry.first, entry.second);
  put(data_dispatcher::course_writer{}.to_writes(*course), made.entries);
  return made;
}

result<continued_run> continue_from(const records::ArchiveRecord& archive, std::uint64_t reached) {
  continued_run made;
  for (const auto& [key, value] : archive.journal()) made.journal[key] = value;
  auto course = data_dispatcher::read_course(made.journal);
  if (!course) return tl::unexpected(course.error());
  const timeline_id timeline{protocol::newest_timeline(course->history).value + timelines_beyond};
  const version_id version{archive.version()};
  made.history =
      protocol::extended(course->history, {timeline, version, course->history.back().revision, {}});
  course->history = made.history;
  put(data_dispatcher::course_writer{made.journal}.to_writes(*course), made.journal);
  records::JournalRewind rewind;
  rewind.set_timeline(timeline.value);
  rewind.set_version(version.value);
  rewind.set_steps_redone(reached > version.value ? reached - version.value : 0);
  rewind.set_reason("everything was lost, and the run goes on from an archive");
  made.journal[fmt::format("rewind/{:012}", timeline.value)] = rewind.SerializeAsString();
  made.coordinator = {archive.coordinator() + incarnations_beyond};
  made.opener = {archive.opener() + incarnations_beyond};
  return made;
}

} // namespace dlrun::runtime
