#include "runtime/resumption.hpp"

#include "actors/common/held_store.hpp"
#include "actors/common/history_conversion.hpp"
#include "actors/common/patience.hpp"
#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/protocol/timeline.hpp"
#include "base/atomic_file.hpp"
#include "base/output_file.hpp"
#include "base/random.hpp"
#include "base/shell_word.hpp"
#include "job/choices.hpp"
#include "job/report_file.hpp"
#include "job/run_layout.hpp"
#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "runtime/changed_spec.hpp"
#include "runtime/descriptor_limit.hpp"
#include "runtime/device_choice.hpp"
#include "runtime/hosts_run.hpp"
#include "runtime/journal_choice.hpp"
#include "runtime/left_behind.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_fingerprint.hpp"
#include "runtime/run_record.hpp"
#include "runtime/trained_with.hpp"

#include <algorithm>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

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
      return fail(
          error_code::bad_usage,
          fmt::format("--skip takes STEP:SLOT, two numbers as in 12:3, or STEP:SLOT:RECORD, not '{}'", text));
    if (slot->step.value >= job.steps || slot->slot.value >= sampler.slots(slot->step))
      return fail(error_code::bad_usage, fmt::format("the job has no slot {}", text));
    if (!slot->is_whole() && slot->record >= sampler.records_in_slot(slot->step, slot->slot))
      return fail(error_code::bad_usage, fmt::format("the job has no record {}", text));
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
  if (job::durability_log_of(spec) != job::durability_log::off) return {};
  return fail(error_code::bad_usage,
              fmt::format("the run in '{}' kept nothing on disk (durability.log is off): it cannot be "
                          "resumed, only trained again in another folder",
                          folder.path().string()));
}

/// A run without a record goes on only when told to.
result<void> check_recorded(const trained_with& past, const run_folder& folder,
                            const resume_options& options) {
  const auto path = folder.path().string();
  if (!past.record && !options.unrecorded)
    return fail(
        error_code::bad_usage,
        fmt::format("the run in '{0}' has no run.record, as those of dlrun 0.1: nobody can tell whether "
                    "its specification and data are what it was trained with; 'dlrun resume {1} "
                    "--unrecorded' goes on with them as they are, and keeps a record from then on",
                    path, base::shell_word(path)));
  if (past.record && options.unrecorded)
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' has a run.record: leave --unrecorded out", path));
  return {};
}

result<void> check_unedited(const trained_with& past, const run_folder& folder,
                            const resume_options& options) {
  if (past.edited.empty() || options.as_trained) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("the specification in the run folder '{0}' is not what the run was trained with: {1}; "
                  "'dlrun resume {2} --as-trained' goes on as trained and writes the file again (the "
                  "edited one is kept beside it); what may change is changed with --set, and another "
                  "job is trained in another folder",
                  folder.path().string(), fmt::join(past.edited, "; "),
                  base::shell_word(folder.path().string())));
}

/// What is asked for, over what the run was trained with. Not yet compared with it.
result<spec::JobSpec> wanted_spec(const trained_with& past, const run_folder& folder,
                                  const resume_options& options) {
  const auto& base = options.as_trained ? past.revisions.back() : past.as_written;
  auto wanted = job::complete_spec(base, folder.spec_file(past.revisions.size() - 1).string(), folder.path(),
                                   options.overrides);
  if (wanted) keep_settled_device(past.revisions.back(), *wanted);
  return wanted;
}

/// Changes the specification of the job as asked. @returns how.
result<spec_change> change_spec(const trained_with& past, const resume_options& options, prepared_job& job) {
  const auto& before = past.revisions.back();
  for (const auto& done : {refuse_overridden(before.train(), job.spec.train()),
                           add_skipped(options.skip, job), set_from(options.from, job)})
    if (!done) return tl::unexpected(done.error());
  auto change = compare_specs(before, job.spec);
  if (!change) return change;
  const auto same = past.record ? check_same_inputs(*past.record, job) : result<void>{};
  if (!same) return tl::unexpected(same.error());
  return options.from ? spec_change::revision : *change;
}

/// Kept under a name that nothing has yet. @returns system when it cannot be.
result<void> keep_edited(const std::filesystem::path& file) {
  std::error_code why;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, why))) return {};
  auto kept = file.string() + ".edited";
  for (int number = 2; std::filesystem::exists(std::filesystem::symlink_status(kept, why)); ++number)
    kept = fmt::format("{}.edited.{}", file.string(), number);
  std::filesystem::rename(file, kept, why);
  if (!why) return {};
  return fail(error_code::system,
              fmt::format("cannot keep the edited '{}' as '{}': {}", file.string(), kept, why.message()));
}

/// An edited file is kept under another name. The specification that is written is that of the
/// record.
result<void> write_spec_again(const std::filesystem::path& file, const spec::JobSpec& spec, bool keep) {
  if (auto kept = keep ? keep_edited(file) : result<void>{}; !kept) return kept;
  return job::write_spec_file(file, spec);
}

/// Before anything is decoded or changed. Bits that are no longer those promised do not become so
/// again.
result<void> check_bits(const trained_with& past, const spec::JobSpec& wanted) {
  if (job::is_relaxed(past.revisions.back()) && !job::is_relaxed(wanted))
    return fail(
        error_code::bad_usage,
        "cluster.determinism: the run has been \"relaxed\", so that its parameters may have other bits "
        "than promised; it stays so, and a run with \"strict\" begins in another folder");
  auto compared = wanted; // what changes bits by intent is refused as what it is: a change of the job
  const auto& before = past.revisions.back().cluster();
  compared.mutable_cluster()->set_threads_per_worker(before.threads_per_worker());
  compared.mutable_cluster()->set_cpu_level(before.cpu_level());
  return past.record ? check_same_arithmetic(*past.record, compared) : result<void>{};
}

/// What an earlier version did not keep: a record, as the run was trained so far, or its number.
result<void> complete_record(const run_folder& folder, const trained_with& past, prepared_job& job) {
  job.run = past.record ? past.record->run() : 0;
  if (job.run != 0) return {};
  auto record = past.record ? *past.record : make_record(job);
  // Its stores may know the number of a run whose record is gone.
  const auto ps_shards = static_cast<std::uint32_t>(job.spec.cluster().ps_shards());
  if (const auto known = common::run_of_stores(folder.path(), ps_shards); known != 0)
    record.set_run(known);
  else if (record.run() == 0)
    record.set_run(base::random_number());
  job.run = record.run();
  record.mutable_revisions()->Assign(past.revisions.begin(), past.revisions.end());
  return write_record(folder.path(), record);
}

/// Each file that says something else than the revision of its place, or is gone.
result<void> write_specs_again(const std::vector<std::filesystem::path>& files,
                               const std::vector<spec::JobSpec>& revisions, bool keep) {
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    const auto there = job::read_spec(files[i]);
    if (there && job::differences(*there, revisions[i]).empty()) continue;
    if (auto done = write_spec_again(files[i], revisions[i], keep); !done) return done;
  }
  return keep ? keep_edited(files.back()) : result<void>{};
}

/// What the run is trained with from here on; and the report of the start before is taken away:
/// were it left, it could be taken for that of this one.
run_change change_to(const run_folder& folder, const prepared_job& job, std::vector<spec::JobSpec> revisions,
                     std::uint32_t replicas, bool as_trained, const std::filesystem::path& report) {
  std::vector<std::filesystem::path> files; // and the one beyond, which there is most often not
  for (std::size_t i = 0; i <= revisions.size(); ++i) files.push_back(folder.spec_file(i));
  return {.of_record =
              [revisions, replicas, spec = job.spec, asked = job.asked](records::RunRecord& record) {
                note_fingerprint(record, spec);
                record.mutable_revisions()->Assign(revisions.begin(), revisions.end());
                if (asked) *record.mutable_asked() = *asked;
                record.set_replicas(replicas);
              },
          .of_files = [files, revisions, as_trained, report]() -> result<void> {
            std::error_code ignored;
            if (!report.empty()) std::filesystem::remove(report, ignored);
            return write_specs_again(files, revisions, as_trained);
          }};
}

/// What somebody wants of a run that goes on.
struct wish {
  const resume_options& options;
  const std::optional<hosts_plan>& hosts;    ///< nothing: this one alone
  const std::optional<spec::JobSpec>& asked; ///< the job file that led to this
  const spec_check& check;                   ///< of the caller; may be empty
  std::filesystem::path report{};            ///< of the start before, which goes; "": it stays
  bool gathers = false;                      ///< nothing is trained (R38)
};

/// What durability.replicas is for these hosts; `auto` says where it was another number before, and
/// what the copies have cost.
replicas_choice choose_replicas_again(const prepared_job& job, const wish& wanted, std::uint32_t before) {
  auto choice = choose_replicas(job, hosts_at_least(wanted.hosts));
  if (!choice.is_auto) return choice;
  if (choice.replicas != before) choice.reason += fmt::format("; before it was {}", before);
  if (const auto so_far = dlrun::read_report(wanted.report)) choice.reason += tell_copy_cost(*so_far);
  return choice;
}

/// Can the job run on these hosts, and from this program?
result<void> check_fits(const spec::JobSpec& job, const wish& what) {
  if (what.gathers) return {};
  if (auto fits = check_for_hosts(job, what.hosts); !fits) return fits;
  return what.check ? what.check(job) : result<void>{};
}

/// The job to go on with: that of the run, changed as asked, into `made`. What changes the training
/// is a new revision of its specification, kept beside the ones before.
result<void> prepare_resumed(const trained_with& past, const wish& what, resumption& made) {
  const auto& options = what.options;
  if (auto kept = check_kept(past.revisions.back(), made.folder); !kept) return kept;
  auto wanted = wanted_spec(past, made.folder, options);
  if (!wanted) return tl::unexpected(wanted.error());
  if (auto enough = check_descriptor_limit(*wanted); !enough) return enough;
  if (auto same = check_bits(past, *wanted); !same) return same;
  auto job = prepare_job(std::move(*wanted));
  if (!job) return tl::unexpected(job.error());
  job->asked = what.asked;
  const auto change = change_spec(past, options, *job);
  if (!change) return tl::unexpected(change.error());
  if (auto fits = check_fits(job->spec, what); !fits) return fits;
  if (auto opened = open_metrics_port(*job); !opened) return opened;
  if (auto settled = settle_journal_again(job->spec); !settled) return settled;
  if (auto settled = settle_device_again(*job, has_gpus_here(what.hosts)); !settled) return settled;
  auto revisions = past.revisions;
  if (*change == spec_change::revision) {
    if (!options.from) job->spec.mutable_train()->clear_from(); // that was for the revision before
    revisions.push_back(job->spec);
  } else {
    revisions.back() = job->spec;
  }
  for (const auto& revision : revisions) job->revisions.push_back(revision.train());
  const auto before = past.record ? std::max(1U, past.record->replicas()) : 1U;
  const auto replicas = choose_replicas_again(*job, what, before);
  made.is_same_job = revisions.size() == past.revisions.size() && replicas.replicas == before &&
                     job::differences(past.revisions.back(), job->spec).empty();
  if (auto kept = complete_record(made.folder, past, *job); !kept) return kept;
  made.change = change_to(made.folder, *job, revisions, replicas.replicas, options.as_trained, what.report);
  if (what.hosts || replicas.replicas != before) made.replicas = replicas;
  set_replicas(replicas, *job);
  made.job = std::move(*job);
  return {};
}

/// A run that is completed trains no more: what would change its training is refused, not ignored.
result<void> check_completed(const run_folder& folder, const trained_with& past,
                             const resume_options& options) {
  const auto after = wanted_spec(past, folder, options);
  if (!after) return tl::unexpected(after.error());
  const auto change = compare_specs(past.revisions.back(), *after);
  if (change && *change != spec_change::revision && options.skip.empty() && !options.from) return {};
  return fail(error_code::bad_usage,
              fmt::format("the run in '{}' is completed: nothing is left of it that {} could change; train "
                          "again, in another folder",
                          folder.path().string(),
                          options.from            ? "--from"
                          : !options.skip.empty() ? "--skip"
                                                  : "--set"));
}

/// Nothing else says how a completed run ended, and which version its stores must have. @param
/// journaled as coordinator::past_run has it
result<void> see_to_report(const resumption& made, const trained_with& past, const std::string& journaled) {
  const auto folder = made.folder.path().string();
  const auto report = made.folder.path() / run_layout::report;
  const auto kept = job::find_report(report);
  if (kept && *kept && (*kept)->status == run_status::completed) return {};
  if (!journaled.empty()) return base::write_file_atomically(base::end_of_links(report), journaled);
  if (!kept) return tl::unexpected(kept.error());
  if (*kept) return {};
  if (made.home && made.home->is_restored())
    return fail(
        error_code::bad_usage,
        fmt::format("the run was trained to its end, and its run folder with the report is lost: copy "
                    "report.json into '{}' from where it was, or take the stores of its PS shards from the "
                    "hosts that had them: {}",
                    folder, tell_hosts(*past.record)));
  return fail(error_code::bad_usage,
              fmt::format("the run in '{0}' is completed, and its report.json, which alone says how it "
                          "ended, is lost: copy it into '{0}' from where there is one; 'dlrun export {1}' "
                          "writes the model all the same",
                          folder, base::shell_word(folder)));
}

/// Where the report goes; a link to it stays one. @returns bad_usage when nothing can be replaced
/// there.
result<std::filesystem::path> place_of_report(const std::filesystem::path& folder) {
  auto report = base::end_of_links(folder / run_layout::report);
  std::error_code ignored;
  const auto about = std::filesystem::status(report, ignored);
  if (!std::filesystem::exists(about) || std::filesystem::is_regular_file(about)) return report;
  return fail(error_code::bad_usage,
              fmt::format("'{}' is no file, so no report can be written there: remove it", report.string()));
}

/// R38. A run that is completed, and whose root did not come to its end: it lacks stores of other
/// hosts, or has not told those that the job is over.
result<void> add_gathering(const trained_with& trained, const coordinator::past_run& past, wish wanted,
                           resumption& made) {
  const auto& path = made.folder.path();
  if (!trained.record || trained.record->hosts().empty()) return {};
  auto last = last_stores_of(path, *trained.record, past.stores);
  if (!last) return tl::unexpected(last.error());
  last->timeline = std::max(last->timeline, past.timeline);
  const auto missing = missing_stores(path, *trained.record, *last);
  if (!missing) return tl::unexpected(missing.error());
  if (missing->empty() && !(wanted.hosts && root_secrets::are_left(path))) return {};
  if (!missing->empty()) made.missing = tell_not_whole(path, *trained.record, *missing, past.stores);
  if (!wanted.hosts) return fail(error_code::bad_usage, made.missing);
  const auto writable = made.folder.check_writable();
  if (!writable && !missing->empty()) return writable;
  if (!writable) return {}; // the model is here: that is enough
  wanted.gathers = true;
  auto prepared = prepare_resumed(trained, wanted, made);
  if (!prepared && missing->empty()) return {}; // the model is here: that is enough
  if (!prepared) return prepared;
  made.is_same_job = true;
  made.gathers = *last;
  made.replicas.reset(); // nothing is trained that would have copies
  return {};
}

/// What its coordinator is called now. One in an etcd may be lost, and the stores be on other
/// hosts: no coordinator of a run that goes on is the first.
incarnation next_coordinator(const coordinator::past_run& past, const common::journal_place& journal) {
  const incarnation next{past.last_coordinator.value + 1};
  return std::holds_alternative<common::etcd_ground>(journal) ? std::max(next, incarnation{2}) : next;
}

/// Where its journal is: what leads to it may be another way than before.
result<common::journal_place> journal_of(const trained_with& trained, const run_folder& folder,
                                         const resume_options& options) {
  if (!trained.revisions.back().cluster().journal().has_etcd()) return folder.path();
  const auto wanted = wanted_spec(trained, folder, options);
  if (!wanted) return tl::unexpected(wanted.error());
  return common::journal_place_of(*wanted, folder.path());
}

/// Roles of a root that was killed just now are ending; theirs is the journal until they have. A
/// folder that cannot be written to is of use only where the run is completed.
result<coordinator::past_run> read_past(const common::journal_place& journal, const run_folder& folder) {
  auto past = common::try_patiently(common::patience_with_the_dying, {},
                                    [&] { return coordinator::read_past_run(journal); });
  if (auto writable = folder.check_writable(); !writable && !(past && past->completed))
    return tl::unexpected(writable.error());
  return past;
}

/// As check_journal_is_of(), when an etcd answers, if that is to be waited for.
result<void> check_own_journal(const common::journal_place& place, std::uint64_t run, root_wait& wait) {
  for (;;) {
    auto own = check_journal_is_of(place, run);
    if (own || own.error().code != error_code::timed_out || !wait.asks_again(own.error())) return own;
    if (!wait.goes_on()) return fail(error_code::interrupted, "it was asked to end");
  }
}

/// R40: this process is the root from here on, and the folder has what the last root has kept. Null
/// where roots of the run keep nothing elsewhere.
result<std::shared_ptr<root_home>> become_root(const trained_with& trained, const run_folder& folder,
                                               const resume_options& options,
                                               const std::optional<hosts_plan>& hosts, root_wait& wait) {
  if (!trained.record || !trained.revisions.back().cluster().journal().has_etcd()) return nullptr;
  if (auto writable = folder.check_writable(); !writable) return tl::unexpected(writable.error());
  const auto wanted = wanted_spec(trained, folder, options);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto is_kept = hosts ? result<bool>{true} : root_home::exists(*wanted);
  if (!is_kept) return tl::unexpected(is_kept.error());
  return *is_kept ? root_home::take_over(*wanted, folder.path(), hosts, wait) : nullptr;
}

/// The trained run in `made.folder`, all else into `made`.
result<void> prepare(const wish& asked_for, root_wait& waiting, resumption& made) {
  const auto& options = asked_for.options;
  auto trained = read_trained_with(made.folder);
  if (!trained) return tl::unexpected(trained.error());
  const auto journal = journal_of(*trained, made.folder, options);
  if (!journal) return tl::unexpected(journal.error());
  if (trained->record)
    if (auto own = check_own_journal(*journal, trained->record->run(), waiting); !own) return own;
  auto home = become_root(*trained, made.folder, options, asked_for.hosts, waiting);
  if (!home) return tl::unexpected(home.error());
  if (*home && (*home)->is_restored()) trained = read_trained_with(made.folder);
  if (!trained) return tl::unexpected(trained.error());
  made.home = std::move(*home);
  const auto past = read_past(*journal, made.folder);
  if (!past) return tl::unexpected(past.error());
  made.coordinator = next_coordinator(*past, *journal);
  if (auto known = check_recorded(*trained, made.folder, options); !known && !past->completed) return known;
  if (auto own = check_stores_are_own(made.folder.path(), *trained); !own) return own;
  if (auto unedited = check_unedited(*trained, made.folder, options); !unedited) return unedited;
  if (past->completed) {
    if (auto there = see_to_report(made, *trained, past->report); !there) return there;
    if (auto fine = check_completed(made.folder, *trained, options); !fine) return fine;
    return add_gathering(*trained, *past, asked_for, made);
  }
  auto wanted = asked_for;
  auto report = place_of_report(made.folder.path());
  if (!report) return tl::unexpected(report.error());
  wanted.report = std::move(*report);
  if (auto prepared = prepare_resumed(*trained, wanted, made); !prepared) return prepared;
  if (wanted.hosts || !trained->record) return {};
  auto left = what_is_left_behind(made.folder.path(), *trained->record);
  if (!left) return tl::unexpected(left.error());
  made.left_behind = std::move(left->text);
  if (made.change)
    made.change->of_files = [change = made.change->of_files, folder = made.folder.path(),
                             shards = left->have_older]() -> result<void> {
      if (auto taken = take_stores_back(folder, shards); !taken) return taken;
      return change();
    };
  return {};
}

} // namespace

result<resumption> prepare_resumption(const std::filesystem::path& directory, const resume_options& options,
                                      const std::optional<hosts_plan>& hosts,
                                      const std::optional<spec::JobSpec>& asked, const spec_check& check,
                                      root_wait* wait) {
  auto folder = run_folder::open_to_resume(directory.string());
  if (!folder) return tl::unexpected(folder.error());
  resumption made{std::move(*folder), std::nullopt, {}, {}};
  root_wait no_wait;
  const auto prepared = prepare({options, hosts, asked, check}, wait != nullptr ? *wait : no_wait, made);
  if (!prepared) return tl::unexpected(prepared.error());
  return made;
}

result<resumption> prepare_restored(run_folder folder, const resume_options& options,
                                    const std::optional<hosts_plan>& hosts) {
  resumption made{std::move(folder), std::nullopt, {}, {}};
  root_wait no_wait;
  const auto prepared = prepare({options, hosts, std::nullopt, {}}, no_wait, made);
  if (prepared) return made;
  made.folder.abandon(); // while it is held: nobody else has begun anything there
  return tl::unexpected(prepared.error());
}

} // namespace dlrun::runtime
