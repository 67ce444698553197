/// How a job ends: what ends it, the digests of the last version, and what the agent is told.
#pragma once

#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <string>
#include <string_view>

namespace dlrun::protocol {

/// Worker or PS shard -> dispatcher -> coordinator: the gradient of a step, or the version that the
/// update makes of it, is NaN or infinite. It is published nowhere where that was seen, so the
/// version before the step stays good, and the job ends. A worker sees it in its slots; where each
/// of them is finite, whoever adds them up sees it in the sum. The tree of sums is the same whoever
/// holds which slots, and so is the step.
struct divergence {
  role_name role;
  fence self;
  timeline_id timeline;
  step_id step;
  bool has_slot = false; ///< else only the sum of the slots is not finite
  slot_id slot;
  std::string text; ///< of a slot: names its records

  template <class Inspector>
  friend auto inspect(Inspector& f, divergence& x) {
    return f(x.role, x.self, x.timeline, x.step, x.has_slot, x.slot, x.text);
  }
};
inline constexpr std::string_view sum_diverged =
    "the gradient of each slot is finite, but their sum is too large for a float";

/// Coordinator -> PS shard: digests of your parameter blocks [first_block, first_block + count) at
/// version `version`.
struct digest_request {
  timeline_id timeline;
  version_id version;
  std::uint32_t first_block = 0;
  std::uint32_t count = 0; ///< at most digest_blocks_max

  template <class Inspector>
  friend auto inspect(Inspector& f, digest_request& x) {
    return f(x.timeline, x.version, x.first_block, x.count);
  }
};
inline constexpr std::uint32_t digest_blocks_max = 1024;

/// PS shard -> coordinator: SHA-256 of each block's parameters and optimizer state
/// (docs/architecture.md, "Same bits").
struct digest_reply {
  std::uint32_t first_block = 0;
  std::string digests; ///< 32 bytes a block

  template <class Inspector>
  friend auto inspect(Inspector& f, digest_reply& x) {
    return f(x.first_block, x.digests);
  }
};

/// How the job ended.
enum class job_outcome : std::uint8_t { completed, failed, interrupted };

/// Coordinator -> agent: the job is over, everything can be stopped. The report is in the run
/// folder.
struct job_ended {
  job_outcome outcome = job_outcome::failed;
  std::string reason;
  error_code code = error_code::role_lost; ///< of a job that failed: what kind of reason
  dlrun::incarnation coordinator{};        ///< who says it: the word of one that is deposed is not heard

  template <class Inspector>
  friend auto inspect(Inspector& f, job_ended& x) {
    return f(x.outcome, x.reason, x.code, x.coordinator);
  }
};

/// The name of the code that the report has; empty of a job that is completed.
inline std::string code_of(const job_ended& ended) {
  if (ended.outcome == job_outcome::completed) return {};
  return std::string{
      to_string(ended.outcome == job_outcome::interrupted ? error_code::interrupted : ended.code)};
}

/// Agent -> coordinator: the user (Ctrl-C, `dlrun stop`) or the agent itself ends the job early.
struct stop_job {
  job_outcome outcome = job_outcome::interrupted;
  std::string reason;
  error_code code = error_code::role_lost; ///< as in job_ended
  bool is_without_report = false;          ///< the run folder is not there any more, or another one is
  bool brings_stores = false;              ///< other hosts may go for good after that (R42)

  template <class Inspector>
  friend auto inspect(Inspector& f, stop_job& x) {
    return f(x.outcome, x.reason, x.code, x.is_without_report, x.brings_stores);
  }
};

} // namespace dlrun::protocol
