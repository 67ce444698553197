#include "runtime/resumption.hpp"

#include "actors/common/patience.hpp"
#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/protocol/timeline.hpp"
#include "base/output_file.hpp"
#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "runtime/changed_spec.hpp"
#include "runtime/descriptor_limit.hpp"

#include <algorithm>

namespace dlrun::runtime {
namespace {

constexpr auto patience_with_the_dying = std::chrono::seconds(5);

/// What has an option of its own is checked there.
result<void> refuse_overridden(const spec::TrainSpec& before, const spec::TrainSpec& after) {
  const bool same_skip = std::ranges::equal(before.skip(), after.skip());
  if (same_skip && before.has_from() == after.has_from() && before.from() == after.from()) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("train.{0} of a run is not changed with --set but with --{0}, see 'dlrun resume --help'",
                  same_skip ? "from" : "skip"));
}

/// Adds what is to be skipped to the specification: slots that the job has.
result<void> add_skipped(const std::vector<std::string>& slots, prepared_job& job) {
  const data::sampler sampler{data::sampler_options_from(job.spec.train(), job.train_records)};
  for (const auto& text : slots) {
    const auto slot = common::parse_slot(text);
    if (!slot)
      return fail(error_code::bad_usage,
                  fmt::format("--skip takes STEP:SLOT, two numbers as in 12:3, not '{}'", text));
    if (slot->step.value >= job.steps || slot->slot.value >= sampler.slots(slot->step))
      return fail(error_code::bad_usage, fmt::format("the job has no slot {}", text));
    if (std::ranges::find(job.spec.train().skip(), text) == job.spec.train().skip().end())
      job.spec.mutable_train()->add_skip(text);
  }
  if (static_cast<std::size_t>(job.spec.train().skip_size()) > protocol::parked_slots_max)
    return fail(error_code::bad_usage, fmt::format("at most {} slots of a run can be left out, not {}",
                                                   protocol::parked_slots_max, job.spec.train().skip_size()));
  return {};
}

result<void> set_from(std::optional<std::uint64_t> from, prepared_job& job) {
  if (!from) return {};
  if (*from >= job.steps)
    return fail(error_code::bad_usage,
                fmt::format("the job has no step {}: its last one is {}", *from, job.steps - 1));
  job.spec.mutable_train()->set_from(*from);
  return {};
}

result<void> check_kept(const spec::JobSpec& spec, const run_folder& folder) {
  if (spec.durability().log() != "off") return {};
  return fail(error_code::bad_usage,
              fmt::format("the run in '{}' kept nothing on disk (durability.log is off): it cannot be "
                          "resumed, only trained again in another folder",
                          folder.path().string()));
}

/// The specification to go on with: the newest of the run, changed as asked. What changes the training is
/// a new revision of it, kept beside the ones before.
result<prepared_job> prepare_resumed(const run_folder& folder, const resume_options& options) {
  const auto files = folder.spec_files();
  const auto before = job::read_spec(files.back(), {});
  if (!before) return tl::unexpected(before.error());
  auto job = prepare_job(files.back(), options.overrides);
  if (!job) return job;
  if (auto enough = check_descriptor_limit(job->spec); !enough) return tl::unexpected(enough.error());
  if (auto kept = check_kept(*before, folder); !kept) return tl::unexpected(kept.error());
  for (const auto& done : {refuse_overridden(before->train(), job->spec.train()),
                           add_skipped(options.skip, *job), set_from(options.from, *job)})
    if (!done) return tl::unexpected(done.error());
  const auto change = compare_specs(*before, job->spec);
  if (!change) return tl::unexpected(change.error());
  if (auto opened = open_metrics_port(*job); !opened) return tl::unexpected(opened.error());
  const bool revised = *change == spec_change::revision || options.from;
  for (const auto& file : files) {
    const auto spec = job::read_spec(file, {});
    if (!spec) return tl::unexpected(spec.error());
    job->revisions.push_back(common::update_part(spec->train()));
  }
  if (*change == spec_change::none && !revised) return job;
  if (revised) job->revisions.push_back(common::update_part(job->spec.train()));
  if (revised && !options.from) job->spec.mutable_train()->clear_from(); // that was for the revision before
  const auto file = revised ? folder.spec_file(files.size()) : files.back();
  if (auto written = job::write_spec_file(file, job->spec); !written) return tl::unexpected(written.error());
  return job;
}

/// A run that is completed trains no more: what would change its training is refused, not ignored.
result<void> check_completed(const run_folder& folder, const resume_options& options) {
  const auto file = folder.spec_files().back();
  const auto before = job::read_spec(file, {});
  if (!before) return tl::unexpected(before.error());
  const auto after = job::read_spec(file, options.overrides);
  if (!after) return tl::unexpected(after.error());
  const auto change = compare_specs(*before, *after);
  if (change && *change != spec_change::revision && options.skip.empty() && !options.from) return {};
  return fail(error_code::bad_usage,
              fmt::format("the run in '{}' is completed: nothing is left of it that {} could change; train "
                          "again, in another folder",
                          folder.path().string(),
                          options.from            ? "--from"
                          : !options.skip.empty() ? "--skip"
                                                  : "--set"));
}

/// Where the report goes; a link to it stays one. @returns bad_usage when nothing can be replaced there.
result<std::filesystem::path> place_of_report(const std::filesystem::path& folder) {
  auto report = base::end_of_links(folder / "report.json");
  std::error_code ignored;
  const auto about = std::filesystem::status(report, ignored);
  if (!std::filesystem::exists(about) || std::filesystem::is_regular_file(about)) return report;
  return fail(error_code::bad_usage,
              fmt::format("'{}' is no file, so no report can be written there: remove it", report.string()));
}

} // namespace

result<resumption> prepare_resumption(const std::filesystem::path& directory, const resume_options& options) {
  auto folder = run_folder::open(directory.string());
  if (!folder) return tl::unexpected(folder.error());
  // Roles of a root that was killed just now are ending; theirs is the journal until they have.
  const auto past = common::try_patiently(patience_with_the_dying, {},
                                          [&] { return coordinator::read_past_run(folder->path()); });
  if (!past) return tl::unexpected(past.error());
  resumption made{std::move(*folder), std::nullopt, {past->last_coordinator.value + 1}};
  if (past->completed) {
    if (auto fine = check_completed(made.folder, options); !fine) return tl::unexpected(fine.error());
    return made;
  }
  const auto report = place_of_report(made.folder.path());
  if (!report) return tl::unexpected(report.error());
  auto job = prepare_resumed(made.folder, options);
  if (!job) return tl::unexpected(job.error());
  made.job = std::move(*job);
  std::error_code ignored; // of the start before: were it left, it could be taken for that of this one
  std::filesystem::remove(*report, ignored);
  return made;
}

} // namespace dlrun::runtime
