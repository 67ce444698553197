#include "cli/pods_outcome.hpp"

#include "base/os_error.hpp"
#include "base/own_machine.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"
#include "cli/complain.hpp"
#include "cli/own_api.hpp"
#include "kubernetes/outcome_telling.hpp"
#include "runtime/root_home.hpp"
#include "runtime/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <numeric>

namespace dlrun::cli {
namespace {

constexpr std::chrono::seconds telling_max{10};

std::uint64_t left_out(const dlrun::report& of) {
  return std::accumulate(of.parked_shards.begin(), of.parked_shards.end(), std::uint64_t{0},
                         [](auto sum, const auto& one) { return sum + one.records; });
}

std::string reason_of(const verb_end& ended) {
  if (!ended.reason.empty() || !ended.report || ended.code == 0) return ended.reason;
  if (const auto records = left_out(*ended.report); records > 0)
    return records == 1 ? "1 record was left out" : fmt::format("{} records were left out", records);
  return fmt::format("{} records are missing, and {} were trained more than once",
                     ended.report->samples_missing, ended.report->samples_duplicated);
}

std::string summary_of(const dlrun::report& of) {
  auto text = fmt::format("{}: {} steps, {} samples ({} missing, {} duplicated), {} recoveries, {:.1f} s",
                          to_string(of.status), of.steps, of.samples_committed, of.samples_missing,
                          of.samples_duplicated, of.recoveries.size(), of.wall_seconds);
  if (of.status != run_status::completed) return text;
  text += fmt::format(", train loss {:.4f}", of.train_loss);
  if (of.validation) text += fmt::format(", validation loss {:.4f}", of.validation->loss);
  return text + ", parameters_sha256 " + of.parameters_sha256;
}

bool is_final(const verb_end& ended, const ended_run& run) {
  if (ended.code == 0 || ended.report || ended.is_for_good) return true;
  if (ended.code != static_cast<int>(job::exit_code::bad_input) || ended.may_pass) return false;
  return ended.error != error_code::bad_data || !run.was_begun;
}

/// The kubelet made the file.
result<void> leave_last_words(const kubernetes::job_outcome& outcome) {
  const base::unique_fd file{::open(kubernetes::termination_file, O_WRONLY | O_TRUNC | O_CLOEXEC)};
  if (file && base::write_all(file.get(), kubernetes::termination_message(outcome))) return {};
  return base::fail_errno(fmt::format("cannot write last words to '{}'", kubernetes::termination_file));
}

/// R43: before Kubernetes is told, which may not answer.
void note_end(const verb_end& ended, const kubernetes::job_outcome& outcome) {
  const auto uid = own_job_uid();
  if (!ended.home || !outcome.is_final || uid.empty()) return;
  if (auto noted = ended.home->note_end(kubernetes::end_note(outcome, uid)); !noted)
    warn(fmt::format("other control pods are not told how the job has ended: {}", noted.error().message));
}

result<void> tell_server(const kubernetes::job_outcome& outcome, const std::string& job) {
  const bool was_begun = outcome.exit_code != static_cast<int>(job::exit_code::bad_input);
  kubernetes::outcome_telling what{.job = job, .pod = base::host_name(), .outcome = outcome};
  if (!was_begun) what.hosts_patience = std::chrono::milliseconds{0};
  return with_own_api([&](kubernetes::api_client& client) {
    for (const auto& one : tell_outcome(client, what, client.time().now() + telling_max))
      warn(fmt::format("Kubernetes is not told all of it: {}", one));
  });
}

} // namespace

std::optional<kubernetes::job_outcome> outcome_of(const verb_end& ended, const ended_run& run) {
  if (run.is_elsewhere || ended.code == static_cast<int>(job::exit_code::interrupted)) return std::nullopt;
  return kubernetes::job_outcome{.exit_code = ended.code,
                                 .reason = reason_of(ended),
                                 .summary = ended.report ? summary_of(*ended.report) : "",
                                 .is_final = is_final(ended, run),
                                 .suspends = ended.waits};
}

void note_completed(const dlrun::report& report, std::shared_ptr<runtime::root_home> home) {
  verb_end ended{.code = static_cast<int>(job::exit_code_for(report)), .report = report};
  ended.home = std::move(home);
  if (const auto outcome = outcome_of(ended, {.was_begun = true})) note_end(ended, *outcome);
}

void tell_kubernetes(const verb_end& ended, const std::string& job, const std::filesystem::path& run_dir) {
  const auto outcome =
      outcome_of(ended, {.is_elsewhere = runtime::has_root(run_dir) || ended.error == error_code::in_use,
                         .was_begun = !runtime::holds_at_most_a_beginning(run_dir)});
  if (!outcome) return;
  if (auto left = leave_last_words(*outcome); !left) warn(left.error().message);
  note_end(ended, *outcome);
  tell_end(*outcome, job);
}

void tell_end(const kubernetes::job_outcome& outcome, const std::string& job) {
  if (auto told = tell_server(outcome, job); !told)
    warn(fmt::format("Kubernetes is not told how the job has ended: {}", told.error().message));
}

} // namespace dlrun::cli
