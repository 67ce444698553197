/// Training a job from a program: start, watch, stop, resume.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/job.hpp>
#include <dlrun/named_values.hpp>
#include <dlrun/report.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun {

/// How far a training is.
struct progress {
  std::string status;             ///< "running", "stopping", or how it ended, as in the report
  std::uint64_t step = 0;         ///< steps that are committed
  std::uint64_t durable_step = 0; ///< steps that would survive the loss of every process
  std::uint64_t steps = 0;        ///< of the whole job
  double seconds = 0;             ///< since the start
  bool measured = false;          ///< a step was made since the start: what follows has values
  double loss = 0;                ///< mean over the records of the newest step
  std::uint64_t epoch = 0;        ///< from 0
  double epoch_loss = 0;          ///< mean over the records of this epoch so far
  named_values epoch_metrics{};   ///< of this epoch so far
};

/// A failure, a recovery, an evaluation: what `dlrun events` tells.
struct training_event {
  std::string event;                   ///< what kind, e.g. "rewind", "evaluated" (docs/cli.md lists them)
  std::string role;                    ///< whom it is about: "worker", "ps_shard", ...
  std::uint32_t index = 0;             ///< which of them
  std::uint64_t incarnation = 0;       ///< which start of it
  double seconds = 0;                  ///< since the start of the run
  std::string text;                    ///< for people
  std::optional<std::uint64_t> step{}; ///< an evaluated version, or to which a rewind went
  double after_ms = 0; ///< of a loss: since the last sign of life; of what follows one: since it was noticed
};

/// What a callback may do.
class training_control {
public:
  virtual ~training_control() = default;
  /// Ends the training in order, after what is under way: the run can be resumed. `reason` goes
  /// into the report. Thread-safe; once is enough.
  virtual void stop(const std::string& reason) = 0;
};

/// What a program wants to be told. All calls come from one thread of the training, one after the
/// other; training goes on meanwhile, in other processes or threads, so a slow callback delays only
/// what is told. One that throws ends the training in order, with what it threw as the reason.
class training_callback {
public:
  virtual ~training_callback() = default;
  /// About ten times a second.
  virtual void on_progress(const progress& /*now*/, training_control& /*control*/) {}
  /// Each once, in the order of their times.
  virtual void on_event(const training_event& /*event*/, training_control& /*control*/) {}
  /// Each evaluation during the training (train.evaluate_every), when it is known. Also an event.
  virtual void on_evaluation(const evaluation& /*result*/, training_control& /*control*/) {}
  /// At the end, also of a training that failed.
  virtual void on_end(const report& /*report*/) {}
};

/// Where a training goes, and who is told.
struct training_options {
  /// Everything the run writes; "" is runs/NAME, by the name of the job. Must be empty, or not
  /// exist.
  std::filesystem::path run_dir{};
  /// Told in this order; shared with the training until it is destroyed.
  std::vector<std::shared_ptr<training_callback>> callbacks{};
  /// The program that the processes of the run execute, which must begin with run_role(). "" is
  /// this one. A program without layers, readers or metrics of its own may name an installed
  /// `dlrun`.
  std::filesystem::path role_program{};
};

/// How to go on with an earlier run.
struct resume_options {
  /// "path=value": another value from here on, e.g. "train.optimizer.sgd.lr=0.01".
  std::vector<std::string> overrides{};
  /// "STEP:SLOT": leaves the records of a slot out; "STEP:SLOT:RECORD": one of them.
  std::vector<std::string> skip{};
  /// Go on from this step, or the newest before it that can be restored; the newest otherwise.
  std::optional<std::uint64_t> from{};
  /// Go on as trained, though the spec.yaml of the run was edited or damaged: it is written again.
  bool as_trained = false;
  /// Go on with a run that has no record of its specification and data (of dlrun 0.1): with those
  /// as they are.
  bool unrecorded = false;
};

/// A training that goes on. This process is the root of the run: it starts coordinator, PS shards
/// and workers (as processes or threads, cluster.placement), replaces those that die, and takes all
/// with it when it ends. Handlers of signals are left alone, but for SIGPIPE, which a run with
/// observability.prometheus_port ignores. All functions are thread-safe, but for the destructor and
/// moves.
class training {
public:
  /// Checks the data and the model against each other, decodes the data, makes the run folder and
  /// begins.
  /// @returns bad_spec, bad_data, bad_usage (a folder in use; run_role() was not called), system:
  /// nothing was started then.
  static result<training> start(const job_spec& job, training_options options = {});
  /// Goes on with the run in `run_dir`, from what its PS shards have on disk; options.run_dir is
  /// not used. Without changes the result is that of an undisturbed run, bit for bit.
  /// @returns as start(), and bad_usage for a folder that is no run's, or a run that is completed.
  static result<training> resume(const std::filesystem::path& run_dir, const resume_options& how = {},
                                 training_options options = {});

  /// What was moved from can only be destroyed or assigned to.
  training(training&& other) noexcept;
  /// Ends the training that was here, as the destructor.
  training& operator=(training&& other) noexcept;
  /// Stops a training that still goes on, and waits for its end.
  ~training();

  /// The full path of the folder.
  const std::filesystem::path& run_dir() const;
  /// As callbacks were told last; how it ended, after that.
  dlrun::progress progress() const;
  /// As training_control::stop().
  void stop(const std::string& reason);
  /// Blocks until the end, when nothing of the run is left but its folder, which others may use
  /// then. A training that failed has a report too, with the reason. May be called again.
  /// @returns an error only when the roles could not be started at all.
  result<report> wait();

private:
  class impl;
  explicit training(std::unique_ptr<impl> impl);

  std::unique_ptr<impl> impl_;
};

/// What the first lines of main() call, after the program's own layers, readers and metrics were
/// registered: the processes of a run execute this program again, and this is where they do their
/// work.
/// @returns the exit code when this process is such a role: main() returns it at once. Nothing in
/// the program that the user started.
[[nodiscard]] std::optional<int> run_role(int argc, char** argv);

/// The whole command line of `dlrun`, for a program that adds layers, readers or metrics: a main()
/// that registers them and returns this is a `dlrun` that knows them. Calls run_role(); takes over
/// SIGINT and SIGTERM. To be called before the program makes a thread: `train --detach` forks, and
/// both processes return from here. @returns the exit code (docs/cli.md).
int run_command_line(int argc, char** argv);

} // namespace dlrun
