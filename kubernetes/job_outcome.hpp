/// How a job has ended, as Kubernetes is told. Pure: texts and objects, no network.
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace dlrun::kubernetes {

/// Where the kubelet reads a container's last words, unless its manifest names another file.
inline constexpr auto termination_file = "/dev/termination-log";
/// Of which it reads so much.
inline constexpr std::size_t termination_bytes_max = 4096;

// Of the Job of the control pod, once it has ended.
inline constexpr auto exit_code_annotation = "dlrun/exit-code";
inline constexpr auto reason_annotation = "dlrun/reason";
inline constexpr auto summary_annotation = "dlrun/summary";

struct job_outcome {
  int exit_code = 0;     ///< of docs/cli.md, but not 130: a job that was stopped may go on
  std::string reason{};  ///< "" with 0
  std::string summary{}; ///< what the report says, on one line; "" where there is none
  /// Another start would end the same way. What is not final may be mended by one, and hosts may
  /// have what it needs.
  bool is_final = true;
  /// Then not final: the job is trained, and what it has is on hosts that stay until somebody has
  /// mended what the reason says, and releases the Job. Until then that is suspended.
  bool suspends = false;

  bool operator==(const job_outcome&) const = default;
};

/// Not longer than termination_bytes_max, nor cut within a character.
std::string termination_message(const job_outcome& outcome);

/// For the Job of the control pod: annotations; one that has ended for good, without success, is
/// not started again, so that Kubernetes takes it for failed; and one that waits is suspended.
nlohmann::json outcome_patch(const job_outcome& outcome);

/// The exit code with which a Job is over for good, as outcome_patch() told it; nothing where that
/// was not told.
std::optional<int> told_end(const nlohmann::json& job);

/// For the control pods of the Job with that uid, which may lack an API server (R43); and back.
/// @returns nothing for what is no such text, or of another Job.
std::string end_note(const job_outcome& outcome, const std::string& job_uid);
std::optional<job_outcome> outcome_in(const std::string& note, const std::string& job_uid);

/// @param job as the server tells it; `name` of the Event, `pod` that reports it, `now` of the wall
nlohmann::json event_of(const job_outcome& outcome, const nlohmann::json& job, const std::string& name,
                        const std::string& pod, std::chrono::system_clock::time_point now);

} // namespace dlrun::kubernetes
