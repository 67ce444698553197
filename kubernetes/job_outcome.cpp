#include "kubernetes/job_outcome.hpp"

#include "kubernetes/json_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

/// Of a Job's annotations and an Event's message; all annotations of an object have 256 KiB.
constexpr std::size_t reason_bytes_max = 1000, summary_bytes_max = 2000;
constexpr int job_failed = 1, bad_input = 2;

/// At most so many bytes of UTF-8, with an ellipsis where it was cut.
std::string cut(const std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  constexpr std::string_view ellipsis = "...";
  auto end = bytes_max - ellipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + std::string{ellipsis};
}

/// As `kubectl get events` shows it.
const char* event_reason(const job_outcome& outcome) {
  if (outcome.suspends) return "ModelNotWritten";
  if (!outcome.is_final) return "AttemptFailed";
  switch (outcome.exit_code) {
  case 0: return "TrainingCompleted";
  case job_failed: return "TrainingFailed";
  case bad_input: return "BadInput";
  default: return "RecordsLeftOut";
  }
}

std::string one_line(const job_outcome& outcome) {
  return fmt::format("exit code {}{}{}{}{}", outcome.exit_code, outcome.reason.empty() ? "" : ": ",
                     outcome.reason, outcome.summary.empty() ? "" : "; ", outcome.summary);
}

} // namespace

std::string termination_message(const job_outcome& outcome) {
  return cut(one_line(outcome), termination_bytes_max);
}

json outcome_patch(const job_outcome& outcome) {
  json patch{{"metadata",
              {{"annotations",
                {{exit_code_annotation, std::to_string(outcome.exit_code)},
                 {reason_annotation, cut(outcome.reason, reason_bytes_max)},
                 {summary_annotation, cut(outcome.summary, summary_bytes_max)}}}}}};
  if (outcome.exit_code != 0 && outcome.is_final) patch["spec"]["backoffLimit"] = 0;
  if (outcome.suspends) patch["spec"]["suspend"] = true;
  return patch;
}

std::optional<int> told_end(const json& job) {
  const auto code = number_of(text_in(member(member(job, "metadata"), "annotations"), exit_code_annotation));
  if (!code || (*code != 0 && member(member(job, "spec"), "backoffLimit") != 0)) return std::nullopt;
  return static_cast<int>(*code);
}

std::string end_note(const job_outcome& outcome, const std::string& job_uid) {
  const json note{{"job", job_uid},
                  {"exit_code", outcome.exit_code},
                  {"reason", cut(outcome.reason, reason_bytes_max)},
                  {"summary", cut(outcome.summary, summary_bytes_max)}};
  return note.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<job_outcome> outcome_in(const std::string& note, const std::string& job_uid) {
  const auto read = json::parse(note, nullptr, false);
  const auto& code = member(read, "exit_code");
  if (job_uid.empty() || text_in(read, "job") != job_uid || !code.is_number_integer()) return std::nullopt;
  return job_outcome{
      .exit_code = code.get<int>(), .reason = text_in(read, "reason"), .summary = text_in(read, "summary")};
}

json event_of(const job_outcome& outcome, const json& job, const std::string& name, const std::string& pod,
              std::chrono::system_clock::time_point now) {
  const auto& of = job.at("metadata");
  const auto when =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::time_point_cast<std::chrono::seconds>(now));
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", name}, {"namespace", of.value("namespace", "")}}},
          {"involvedObject",
           {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"name", of.value("name", "")},
            {"namespace", of.value("namespace", "")},
            {"uid", of.value("uid", "")}}},
          {"type", outcome.exit_code == 0 ? "Normal" : "Warning"},
          {"reason", event_reason(outcome)},
          {"message", cut(one_line(outcome), reason_bytes_max)},
          {"source", {{"component", "dlrun"}}},
          {"reportingComponent", "dlrun"},
          {"reportingInstance", pod},
          {"firstTimestamp", when},
          {"lastTimestamp", when},
          {"count", 1}};
}

} // namespace dlrun::kubernetes
