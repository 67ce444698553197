/// What a run came to: report.json in the run folder (docs/spec.md lists the fields).
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/named_values.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun {

/// How a run ended.
enum class run_status : std::uint8_t { completed, failed, interrupted };
std::string to_string(run_status status);

/// One failure and what became of it. `detected_ms` is the time from the role's last sign of life to the
/// notice of its end (an upper bound); the other times count from that notice.
struct recovery {
  std::string role; // coordinator, data_dispatcher, ps_shard, worker, agent
  std::uint32_t index = 0;
  std::string cause;             // e.g. "killed by signal 9"
  std::uint64_t incarnation = 0; // of the replacement
  double at_seconds = 0;         // since the start of the run
  double detected_ms = 0;
  double redispatched_ms = 0; // its slots were given to others
  double resumed_ms = 0;      // the replacement contributed again
  std::uint64_t steps_redone = 0;
};

/// Everybody went back to an earlier version.
struct rewind {
  std::uint64_t timeline = 0; // that began with it
  std::uint64_t version = 0;  // to which it went
  std::uint64_t steps_redone = 0;
  double at_seconds = 0; // since the start of the run
  std::string reason;
};

/// The records of one slot, left out.
struct parked_shard {
  std::uint64_t step = 0;
  std::uint32_t slot = 0;
  std::uint64_t records = 0;
  std::string reason;
};

/// From version to version, since the last start of the slowest PS shard.
struct step_times {
  double p50 = 0, p99 = 0, max = 0; // milliseconds
};

struct durability_used {
  std::string log, sync; // as in the specification; `auto` is resolved
};

struct validation_metrics {
  double loss = 0;
  named_values metrics;
  std::uint64_t samples = 0;
};

/// Metrics by name.
struct metric_values {
  named_values all;
};

/// A version that was evaluated.
struct evaluation {
  std::uint64_t step = 0;
  double epoch = 0; // times each record was trained on
  double loss = 0;
  metric_values metrics;
};

/// The best of them.
struct best_evaluation {
  std::uint64_t step = 0; // the snapshot of this version stays with every PS shard
  std::string metric;
  double value = 0;
};

struct software_versions {
  std::string dlrun, caf, onednn, compiler;
  std::uint32_t spec = 1;
};

/// What the bits of a result depend on besides the specification and the data.
struct host_fingerprint {
  std::string cpu_model;
  std::string isa;           // e.g. "avx512_vnni"
  std::uint32_t threads = 1; // threads a worker
};

struct report {
  std::string job;
  run_status status = run_status::failed;
  std::string reason; // why it failed or was interrupted; empty when completed
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  std::uint64_t samples_committed = 0;
  std::uint64_t samples_missing = 0;
  std::uint64_t samples_duplicated = 0;
  std::string parameters_sha256; // parameters and optimizer state, canonical order; hex
  /// Mean over the last epoch. NaN is written as null.
  double train_loss = 0;
  named_values train_metrics;                   // "train_accuracy", ...
  std::optional<validation_metrics> validation; // of the last version
  std::vector<evaluation> evaluations;          // ascending by step
  std::optional<best_evaluation> best;          // where the specification keeps it
  bool stopped_early = false;
  double wall_seconds = 0;
  double samples_per_second = 0;
  step_times step_ms;
  /// Samples that took effect / samples computed.
  double goodput = 0;
  std::uint64_t steps_redone = 0;
  std::vector<recovery> recoveries;
  std::vector<rewind> rewinds;
  std::vector<parked_shard> parked_shards;
  durability_used durability;
  std::uint64_t bytes_logged = 0;
  std::uint64_t bytes_snapshotted = 0;
  software_versions versions;
  host_fingerprint host;
};

/// The report as JSON text, keys in documented order. Doubles keep every bit; NaN and infinities become null.
std::string to_json(const report& value);
/// @returns bad_data for text that is not such a report. null numbers come back as NaN; unknown keys are
/// ignored.
result<report> report_from_json(const std::string& text);

/// Writes `path` so that it appears whole or not at all: temporary file beside it, fsync, rename.
result<void> write_report(const std::filesystem::path& path, const report& value);
result<report> read_report(const std::filesystem::path& path);

} // namespace dlrun
