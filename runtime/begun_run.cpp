#include "runtime/begun_run.hpp"

#include "base/shell_word.hpp"
#include "job/choices.hpp"
#include "job/report_file.hpp"
#include "job/run_layout.hpp"
#include "runtime/archive_restoration.hpp"
#include "runtime/changed_spec.hpp"
#include "runtime/root_home.hpp"
#include "runtime/run_record.hpp"
#include "runtime/trained_with.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

result<void> check_keeps_something(const spec::JobSpec& asked) {
  if (job::durability_log_of(asked) != job::durability_log::off) return {};
  return fail(error_code::bad_usage,
              "--or-resume is for a job that keeps something to go on with, and with durability.log: off "
              "this one keeps nothing: let it be \"auto\", or leave --or-resume out");
}

/// What the file says otherwise than the last time. What `resume` has changed since stays, unless
/// the file changes it too, to something else.
std::vector<job::spec_difference> changed_since(const records::RunRecord& record,
                                                const spec::JobSpec& asked) {
  auto changes = job::differences(record.asked(), asked);
  const auto from_now = job::differences(*record.revisions().rbegin(), asked);
  std::erase_if(changes, [&](const auto& one) {
    return std::ranges::find(from_now, one.path, &job::spec_difference::path) == from_now.end();
  });
  return changes;
}

result<std::vector<std::string>> take_changes(const records::RunRecord& record, const spec::JobSpec& asked,
                                              const std::string& folder) {
  if (!record.has_asked())
    return fail(error_code::bad_usage,
                fmt::format("the run in '{0}' was begun by an earlier dlrun, which did not note what its job "
                            "file said: 'dlrun resume {1}' goes on with it",
                            folder, base::shell_word(folder)));
  auto changes = changed_since(record, asked);
  std::vector<std::string> free;
  for (const auto& one : changes)
    if (one.rule == spec::FieldRule::FREE) free.push_back(fmt::format("{}={}", one.path, one.whole_after));
  if (free.size() == changes.size()) return free;
  std::erase_if(changes, [](const auto& one) { return one.rule == spec::FieldRule::FREE; });
  return fail(
      error_code::bad_usage,
      fmt::format("the run in '{0}' is of another job than this file: {1}; put that back, or choose "
                  "another folder with --run-dir; 'dlrun resume {2} --set' changes what may change of "
                  "a run",
                  folder, tell_changes(changes, "{} was {} there, and is {}"), base::shell_word(folder)));
}

/// What resume without them loses, nobody has asked for here.
result<void> check_hosts(const run_folder& folder, const records::RunRecord& record, bool has_hosts) {
  if (has_hosts || record.hosts().empty()) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("the run in '{0}' has other hosts, {1}: name their list with --hosts; 'dlrun resume "
                  "{2}' goes on without them, and says what that loses",
                  folder.path().string(), tell_hosts(record), base::shell_word(folder.path().string())));
}

/// R40: a run of this job whose roots keep in an etcd what its folder had. Makes the folder, with
/// the record alone: prepare_resumption() brings the rest, once this process is the root.
result<std::optional<begun_run>> find_in_etcd(const spec::JobSpec& asked, const std::filesystem::path& place,
                                              bool has_hosts) {
  const auto& journal = asked.cluster().journal();
  if (!has_hosts || !journal.has_etcd() || journal.etcd().prefix() == "auto") return std::nullopt;
  const auto record = root_home::peek(asked);
  if (!record) return tl::unexpected(record.error());
  if (!*record) return std::nullopt;
  auto changes = take_changes(**record, asked, journal.etcd().prefix());
  if (!changes) return tl::unexpected(changes.error());
  if (auto made = run_folder::create_folders(place); !made) return tl::unexpected(made.error());
  if (auto written = write_record(place, **record); !written) return tl::unexpected(written.error());
  return begun_run{place, std::move(*changes), {}};
}

} // namespace

result<std::optional<std::string>> begin_from_archive(const spec::JobSpec& asked, const std::string& wanted,
                                                      const std::filesystem::path& archives) {
  if (auto keeps = check_keeps_something(asked); !keeps) return tl::unexpected(keeps.error());
  const auto place = place_for_run(wanted, asked);
  if (!holds_at_most_a_beginning(place)) return std::nullopt;
  const auto found = find_whole_archive(archives);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto changes = take_changes((*found)->record.record(), asked, (*found)->place.path.string());
  if (!changes) return tl::unexpected(changes.error());
  if (auto restored = restore_run(**found, place); !restored) return tl::unexpected(restored.error());
  return tell_restored(**found);
}

run_in_etcd look_into_etcd(const spec::JobSpec& asked) {
  const auto& journal = asked.cluster().journal();
  if (!journal.has_etcd() || journal.etcd().prefix() == "auto") return run_in_etcd::not_begun;
  const auto exists = root_home::exists(asked);
  if (!exists) return run_in_etcd::unknown;
  return *exists ? run_in_etcd::begun : run_in_etcd::not_begun;
}

result<std::optional<begun_run>> find_begun_run(const spec::JobSpec& asked, const std::string& wanted,
                                                bool has_hosts) {
  if (auto keeps = check_keeps_something(asked); !keeps) return tl::unexpected(keeps.error());
  const auto place = place_for_run(wanted, asked);
  if (holds_at_most_a_beginning(place)) return find_in_etcd(asked, place, has_hosts);
  const auto is_recorded = has_record(place);
  if (!is_recorded) return tl::unexpected(is_recorded.error());
  if (!*is_recorded)
    return fail(
        error_code::bad_usage,
        fmt::format("what is in the folder '{0}' is no run that this dlrun has begun: it has no "
                    "run.record; remove it, or choose another folder with --run-dir ('dlrun resume {1} "
                    "--unrecorded' goes on with a run of dlrun 0.1)",
                    place.string(), base::shell_word(place.string())));
  const auto folder = run_folder::open_to_resume(place.string());
  if (!folder) return tl::unexpected(folder.error());
  const auto record = read_record(folder->path());
  if (!record) return tl::unexpected(record.error());
  auto changes = take_changes(**record, asked, place.string());
  if (!changes) return tl::unexpected(changes.error());
  if (auto fine = check_hosts(*folder, **record, has_hosts); !fine) return tl::unexpected(fine.error());
  begun_run found{folder->path(), std::move(*changes)};
  const auto report = job::find_report(folder->path() / run_layout::report);
  if (!report) return tl::unexpected(report.error());
  if (*report && (*report)->status == run_status::failed) found.failed = **report;
  return found;
}

} // namespace dlrun::runtime
