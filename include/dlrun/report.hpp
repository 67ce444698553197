/// Reports: how a run ended. A run folder has one as report.json (docs/cli.md lists the fields).
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
  interrupted, ///< somebody stopped it; it can be resumed
};
/// "completed", "failed" or "interrupted".
std::string to_string(run_status status);

/// One loss of a role and the recovery from it. `detected_ms` counts from the role's last sign of
/// life to the moment when the loss was noticed, so it is an upper bound; the other times count
/// from that moment.
struct recovery {
  std::string role;               ///< coordinator, data_dispatcher, ps_shard, worker, agent
  std::uint32_t index = 0;        ///< number of that role, from 0
  std::string cause;              ///< e.g. "killed by signal 9"
  std::uint64_t incarnation = 0;  ///< of the replacement
  double at_seconds = 0;          ///< since the start of the run
  double detected_ms = 0;         ///< until the loss was noticed
  double redispatched_ms = 0;     ///< until other workers had its slots
  double resumed_ms = 0;          ///< until the replacement contributed
  std::uint64_t steps_redone = 0; ///< committed steps that were computed again
};

/// The whole job went back to an earlier version.
struct rewind {
  std::uint64_t timeline = 0;     ///< the timeline that began with it
  std::uint64_t version = 0;      ///< the version to which the job went back
  std::uint64_t steps_redone = 0; ///< committed steps that were computed again
  double at_seconds = 0;          ///< since the start of the run
  std::string reason;             ///< for people
};

/// A PS shard came back with less than its store had acknowledged: the store was put back from an
/// older copy, is damaged, empty or another one.
struct store_loss {
  std::uint32_t ps_shard = 0;     ///< number of the PS shard, from 0
  std::uint64_t incarnation = 0;  ///< of the start that came back
  std::string host;               ///< host of the store that it came back with
  std::string store;              ///< identity of that store when it was opened; 16 hexadecimal digits
  std::uint64_t found = 0;        ///< newest version in that store
  std::string host_before;        ///< host of the store that the PS shard had before
  std::string store_before;       ///< identity of the store before
  std::uint64_t acknowledged = 0; ///< newest version that the store before is known to have had
  std::string reason;             ///< for people
};

/// Older data was put in the place of the journal while the job ran. What the journal had noted
/// since then is lost: results of evaluations of versions that no disk has any more, and what this
/// report sums up of that time.
struct journal_loss {
  std::string role;              ///< role of a start that there is, and that the older journal does not know
  std::uint32_t index = 0;       ///< number of that role, from 0
  std::uint64_t incarnation = 0; ///< of that start
  std::uint64_t known = 0;       ///< highest incarnation that the older journal has issued for the role
  double at_seconds = 0;         ///< since the start of the run, as far as the older journal knows
};

/// Records that were left out: all of one slot, or one of them.
struct records_left_out {
  std::uint64_t step = 0;               ///< from 0
  std::uint32_t slot = 0;               ///< of that step, from 0
  std::uint64_t records = 0;            ///< number of records left out
  std::string reason;                   ///< for people
  std::string skip{};                   ///< the argument of `dlrun resume --skip` for them
  std::vector<std::uint64_t> numbers{}; ///< numbers of the records in their files, from 0
};
/// The name that `records_left_out` had before version 0.2.
using parked_shard [[deprecated("it is called records_left_out")]] = records_left_out;

/// Milliseconds from version to version, since the last start of the slowest PS shard.
struct step_times {
  double p50 = 0; ///< median
  double p99 = 0; ///< one of a hundred steps took longer
  double max = 0; ///< the longest
};

/// As in the specification; `auto` is resolved.
struct durability_used {
  std::string log;            ///< every_step, snapshots or off
  std::string sync;           ///< process or power
  std::uint32_t replicas = 1; ///< stores of each PS shard, on as many hosts
  /// For which steps lacked nothing but what their copy had to get first, of the PS shard where
  /// that was longest; seconds, over all starts of the run.
  double copies_waited_seconds = 0;
};

/// Loss and metrics of the last version on the validation data.
struct validation_metrics {
  double loss = 0;           ///< mean over the records
  named_values metrics;      ///< those of model.metrics
  std::uint64_t samples = 0; ///< number of records
};

/// Metrics by name.
struct metric_values {
  named_values all; ///< in the order of the specification
};

/// The result of evaluating one version.
struct evaluation {
  std::uint64_t step = 0; ///< the version: number of steps that made it
  double epoch = 0;       ///< how often each record had been trained on
  double loss = 0;        ///< mean over the validation records
  metric_values metrics;  ///< those of model.metrics
};

/// The best evaluation of a run.
struct best_evaluation {
  std::uint64_t step = 0; ///< the version; every PS shard keeps its snapshot
  std::string metric;     ///< train.keep_best.metric
  double value = 0;       ///< of that metric
};

/// What the run was made with.
struct software_versions {
  std::string dlrun;      ///< e.g. "0.1.0"
  std::string caf;        ///< version of the actor framework
  std::string onednn;     ///< version of oneDNN, the library of CPU kernels
  std::string compiler;   ///< e.g. "GCC 12.2.0"
  std::uint32_t spec = 1; ///< version of the format of job files
};

/// What the bits of a result depend on besides the specification and the data.
struct host_fingerprint {
  std::string cpu_model;     ///< as the kernel names it
  std::string isa;           ///< instruction set that oneDNN uses, e.g. "avx512_vnni"
  std::uint32_t threads = 1; ///< compute threads of a worker
  std::string device;        ///< what workers computed on: "cpu", or a GPU and its libraries
};

/// How a run ended, and what it did. A plain value.
struct report {
  std::string job;                        ///< its name
  run_status status = run_status::failed; ///< how it ended
  std::string reason;                     ///< why it failed or was interrupted; empty when completed
  std::string error;                      ///< code of that reason (error_code); empty when completed
  std::uint64_t steps = 0;                ///< committed steps
  std::uint64_t epochs = 0;               ///< whole epochs
  std::uint64_t samples_committed = 0;    ///< records that took effect, counted once per epoch
  std::uint64_t samples_missing = 0;      ///< records that should have taken effect by `steps` and did not
  std::uint64_t samples_duplicated = 0;   ///< records that took effect more often than they should
  std::string parameters_sha256;          ///< parameters and optimizer state, canonical order; hex
  bool deterministic = true;              ///< false with cluster.determinism: relaxed
  double train_loss = 0;                  ///< mean over the last epoch; NaN is written as null
  named_values train_metrics;             ///< of the last epoch, by names as "train_accuracy"
  std::optional<validation_metrics> validation; ///< of the last version; nothing without validation data
  std::vector<evaluation> evaluations;          ///< ascending by step
  std::optional<best_evaluation> best;          ///< where train.keep_best asks for it
  bool stopped_early = false;                   ///< by train.early_stopping
  double wall_seconds = 0; ///< of all starts of the run, without the time between a death and its resume
  double samples_per_second = 0;               ///< samples_committed / wall_seconds
  step_times step_ms;                          ///< milliseconds
  double goodput = 0;                          ///< samples that took effect / samples computed
  std::uint64_t steps_redone = 0;              ///< steps computed again after all rewinds
  std::vector<recovery> recoveries;            ///< in the order of their times
  std::vector<rewind> rewinds;                 ///< in the order of their times
  std::vector<store_loss> store_losses;        ///< by PS shard, in the order of their times
  std::vector<journal_loss> journal_losses;    ///< in the order of their times
  std::vector<records_left_out> parked_shards; ///< records left out: the run has not trained all data
  durability_used durability;                  ///< what was written to disk, and when it was synced
  std::uint64_t bytes_logged = 0;              ///< by all PS shards
  std::uint64_t bytes_snapshotted = 0;         ///< by all PS shards
  std::uint64_t bytes_copied = 0;              ///< of all PS shards, to other hosts
  software_versions versions;                  ///< software that trained
  host_fingerprint host;                       ///< hardware that trained
};

/// The report as JSON text (docs/report.schema.json), keys in documented order. Doubles keep every
/// bit; NaN and infinities become null.
std::string to_json(const report& value);
/// Parses what to_json() made: null numbers become NaN, unknown keys are ignored. @returns bad_data
/// for text that is not such a report.
result<report> report_from_json(const std::string& text);

/// Writes the report to `path`, which appears whole or not at all (base/output_file.hpp). @returns
/// system; bad_usage for a place where the caller may not write.
result<void> write_report(const std::filesystem::path& path, const report& value);
/// Reads what write_report() wrote. @returns system when there is no such file; bad_data when it is
/// too large; else as report_from_json().
result<report> read_report(const std::filesystem::path& path);

} // namespace dlrun
