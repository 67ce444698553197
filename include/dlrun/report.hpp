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
enum class run_status : std::uint8_t {
  completed,   ///< all data was trained
  failed,      ///< a role could not be kept alive, the training diverged, ...: `reason` says why
  interrupted, ///< somebody ended it; it can be resumed
};
/// "completed", "failed" or "interrupted".
std::string to_string(run_status status);

/// One failure and what became of it. `detected_ms` is the time from the role's last sign of life
/// to the notice of its end (an upper bound); the other times count from that notice.
struct recovery {
  std::string role;               ///< coordinator, data_dispatcher, ps_shard, worker, agent
  std::uint32_t index = 0;        ///< which of them, from 0
  std::string cause;              ///< e.g. "killed by signal 9"
  std::uint64_t incarnation = 0;  ///< of the replacement
  double at_seconds = 0;          ///< since the start of the run
  double detected_ms = 0;         ///< until it was noticed
  double redispatched_ms = 0;     ///< until its slots were given to others
  double resumed_ms = 0;          ///< until the replacement contributed
  std::uint64_t steps_redone = 0; ///< committed steps that were made again
};

/// Everybody went back to an earlier version.
struct rewind {
  std::uint64_t timeline = 0;     ///< that began with it
  std::uint64_t version = 0;      ///< to which it went
  std::uint64_t steps_redone = 0; ///< committed steps that were made again
  double at_seconds = 0;          ///< since the start of the run
  std::string reason;             ///< for people
};

/// A PS shard came back with less than its store had acknowledged: the store was put back from an
/// older copy, is damaged, empty or another one.
struct store_loss {
  std::uint32_t ps_shard = 0;     ///< which of them, from 0
  std::uint64_t incarnation = 0;  ///< of the start that came back
  std::string host;               ///< where the store is that it came back with
  std::string store;              ///< its identity as it was opened; 16 hexadecimal digits
  std::uint64_t found = 0;        ///< newest version there
  std::string host_before;        ///< where the store was that it had before
  std::string store_before;       ///< identity of that one
  std::uint64_t acknowledged = 0; ///< newest version that this one is known to have had
  std::string reason;             ///< for people
};

/// Records that were left out: all of one slot, or one of them.
struct parked_shard {
  std::uint64_t step = 0;               ///< from 0
  std::uint32_t slot = 0;               ///< of that step, from 0
  std::uint64_t records = 0;            ///< how many
  std::string reason;                   ///< for people
  std::string skip{};                   ///< what `dlrun resume --skip` takes for them
  std::vector<std::uint64_t> numbers{}; ///< of the records in their files, from 0
};

/// From version to version, since the last start of the slowest PS shard. Milliseconds.
struct step_times {
  double p50 = 0; ///< median
  double p99 = 0; ///< of a hundred steps one took longer
  double max = 0; ///< the longest
};

/// As in the specification; `auto` is resolved.
struct durability_used {
  std::string log;            ///< every_step, snapshots or off
  std::string sync;           ///< process or power
  std::uint32_t replicas = 1; ///< stores of each PS shard, on as many hosts
};

/// What the last version makes of the validation data.
struct validation_metrics {
  double loss = 0;           ///< mean over the records
  named_values metrics;      ///< model.metrics
  std::uint64_t samples = 0; ///< records
};

/// Metrics by name.
struct metric_values {
  named_values all; ///< in the order of the specification
};

/// A version that was evaluated.
struct evaluation {
  std::uint64_t step = 0; ///< steps that made it
  double epoch = 0;       ///< times each record was trained on
  double loss = 0;        ///< mean over the validation records
  metric_values metrics;  ///< model.metrics
};

/// The best of them.
struct best_evaluation {
  std::uint64_t step = 0; ///< the snapshot of this version stays with every PS shard
  std::string metric;     ///< train.keep_best.metric
  double value = 0;       ///< of that metric
};

/// What the run was made with.
struct software_versions {
  std::string dlrun;      ///< e.g. "0.1.0"
  std::string caf;        ///< of the actor framework
  std::string onednn;     ///< of the kernels
  std::string compiler;   ///< e.g. "GCC 12.2.0"
  std::uint32_t spec = 1; ///< of the format of job files
};

/// What the bits of a result depend on besides the specification and the data.
struct host_fingerprint {
  std::string cpu_model;     ///< as the kernel names it
  std::string isa;           ///< that oneDNN uses, e.g. "avx512_vnni"
  std::uint32_t threads = 1; ///< threads a worker
  std::string device;        ///< that workers computed on: "cpu", or a GPU and its libraries
};

/// What a run came to.
struct report {
  std::string job;                              ///< its name
  run_status status = run_status::failed;       ///< how it ended
  std::string reason;                           ///< why it failed or was interrupted; empty when completed
  std::string error;                            ///< code of that reason (error_code); empty when completed
  std::uint64_t steps = 0;                      ///< committed
  std::uint64_t epochs = 0;                     ///< whole ones
  std::uint64_t samples_committed = 0;          ///< records that took effect, each time that it was due
  std::uint64_t samples_missing = 0;            ///< that should have, by `steps`, and did not
  std::uint64_t samples_duplicated = 0;         ///< that took effect more often than due
  std::string parameters_sha256;                ///< parameters and optimizer state, canonical order; hex
  bool deterministic = true;                    ///< false with cluster.determinism: relaxed
  double train_loss = 0;                        ///< mean over the last epoch; NaN is written as null
  named_values train_metrics;                   ///< of the last epoch, by names as "train_accuracy"
  std::optional<validation_metrics> validation; ///< of the last version; nothing without validation data
  std::vector<evaluation> evaluations;          ///< ascending by step
  std::optional<best_evaluation> best;          ///< where the specification keeps it
  bool stopped_early = false;                   ///< by train.early_stopping
  double wall_seconds = 0; ///< of all starts of the run, without the time between a death and its resume
  double samples_per_second = 0;           ///< samples_committed / wall_seconds
  step_times step_ms;                      ///< milliseconds
  double goodput = 0;                      ///< samples that took effect / samples computed
  std::uint64_t steps_redone = 0;          ///< of all recoveries and rewinds
  std::vector<recovery> recoveries;        ///< in the order of their times
  std::vector<rewind> rewinds;             ///< in the order of their times
  std::vector<store_loss> store_losses;    ///< by PS shard, in the order of their times
  std::vector<parked_shard> parked_shards; ///< data left out: the run has not trained all
  durability_used durability;              ///< how it was kept safe
  std::uint64_t bytes_logged = 0;          ///< by all PS shards
  std::uint64_t bytes_snapshotted = 0;     ///< by all PS shards
  software_versions versions;              ///< that it was made with
  host_fingerprint host;                   ///< that it was made on
};

/// The report as JSON text, keys in documented order. Doubles keep every bit; NaN and infinities
/// become null.
std::string to_json(const report& value);
/// @returns bad_data for text that is not such a report. null numbers come back as NaN; unknown
/// keys are ignored.
result<report> report_from_json(const std::string& text);

/// Writes `path` so that it appears whole or not at all: temporary file beside it, fsync, rename.
result<void> write_report(const std::filesystem::path& path, const report& value);
/// Reads what write_report() wrote. @returns system when there is no such file; else as
/// report_from_json().
result<report> read_report(const std::filesystem::path& path);

} // namespace dlrun
