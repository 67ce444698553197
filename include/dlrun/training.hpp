/// Trains a job from a program: start, watch, stop, resume.
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

/// How far a training has come.
struct progress {
  std::string status;             ///< "running", "stopping", or how it ended, as in the report
  std::uint64_t step = 0;         ///< steps that are committed
  std::uint64_t durable_step = 0; ///< steps that would survive the loss of every process
  std::uint64_t steps = 0;        ///< steps of the whole job
  double seconds = 0;             ///< since start() or resume()
  bool measured = false;          ///< a step was made since then: the fields below have values
  double loss = 0;                ///< mean over the records of the newest step
  std::uint64_t epoch = 0;        ///< from 0
  double epoch_loss = 0;          ///< mean over the records of this epoch so far
  named_values epoch_metrics{};   ///< metrics of this epoch so far
};

/// A failure, a recovery, an evaluation: what `dlrun events` shows.
struct training_event {
  std::string event;                   ///< its kind, e.g. "rewind", "evaluated" (docs/cli.md lists them)
  std::string role;                    ///< the role that it is about: "worker", "ps_shard", ...
  std::uint32_t index = 0;             ///< number of that role, from 0
  std::uint64_t incarnation = 0;       ///< of the start of that role
  double seconds = 0;                  ///< since start() or resume()
  std::string text;                    ///< for people
  std::optional<std::uint64_t> step{}; ///< the version that was evaluated, or to which a rewind went
  double after_ms =
      0; ///< of a loss: since the last sign of life; of what follows: since the loss was noticed
};

/// Lets a callback control the training that calls it.
class training_control {
public:
  virtual ~training_control() = default;
  /// Asks the training to end in order; the run can be resumed. `reason` goes into the report; that
  /// of the first call counts. Thread-safe; does not wait.
  virtual void stop(const std::string& reason) = 0;
};

/// Receives news of a training. One thread of the training makes all calls, one after the other.
/// Training continues meanwhile in other processes or threads, so a slow callback delays only later
/// calls. When a callback throws a std::exception, the training ends in order, with what() in the
/// reason.
class training_callback {
public:
  virtual ~training_callback() = default;
  /// About ten times a second.
  virtual void on_progress(const progress& /*now*/, training_control& /*control*/) {}
  /// Each event once, in the order of their times.
  virtual void on_event(const training_event& /*event*/, training_control& /*control*/) {}
  /// Each evaluation (train.evaluate_every, and the last), when its result is known. Follows the
  /// on_event() of the same evaluation.
  virtual void on_evaluation(const evaluation& /*result*/, training_control& /*control*/) {}
  /// At the end, also when the training failed.
  virtual void on_end(const report& /*report*/) {}
};

/// Where a training writes, and which callbacks it calls.
struct training_options {
  /// Folder for everything that the run writes; "": runs/NAME, by the name of the job. Must be
  /// empty, or not exist.
  std::filesystem::path run_dir{};
  /// Called in this order; the training shares ownership until it is destroyed.
  std::vector<std::shared_ptr<training_callback>> callbacks{};
  /// The program that the processes of the run execute, which must begin with run_role(). "": this
  /// program. A program without layers, readers or metrics of its own may name an installed
  /// `dlrun`.
  std::filesystem::path role_program{};
};

/// How to continue an earlier run.
struct resume_options {
  /// "path=value": a value that holds from here on, e.g. "train.optimizer.sgd.lr=0.01".
  std::vector<std::string> overrides{};
  /// Leaves out records: "STEP:SLOT" all those of a slot, "STEP:SLOT:RECORD" one of them.
  std::vector<std::string> skip{};
  /// Continue from this step, or from the newest one before it that can be restored. Nothing: from
  /// the newest.
  std::optional<std::uint64_t> from{};
  /// Continue as trained although the run's spec.yaml was edited or damaged; it is written again.
  bool as_trained = false;
  /// Continue a run of dlrun 0.1, which has no record of its specification and data: use those that
  /// are there now.
  bool unrecorded = false;
};

/// A training under way. This process is the root of the run: it starts coordinator, PS shards and
/// workers (as processes or threads, cluster.placement), replaces those that die, and ends them all
/// when it ends. It leaves signal handlers alone, except that a run with
/// observability.prometheus_port ignores SIGPIPE. All functions are thread-safe, except the
/// destructor and moves.
class training {
public:
  /// Checks data and model against each other, decodes the data, makes the run folder and begins to
  /// train. Blocks until the data is decoded.
  /// @returns bad_spec, bad_data, bad_usage (a folder in use; run_role() was not called; a reader
  /// or layer of the program threw), system. After an error nothing was started.
  static result<training> start(const job_spec& job, training_options options = {});
  /// Continues the run in `run_dir`, from what its PS shards have on disk; options.run_dir is not
  /// used. Without changes the result is that of an undisturbed run, bit for bit.
  /// @returns as start(), and bad_usage for a folder without a run, or a run that is completed.
  static result<training> resume(const std::filesystem::path& run_dir, const resume_options& how = {},
                                 training_options options = {});

  /// A moved-from object can only be destroyed or assigned to.
  training(training&& other) noexcept;
  /// First ends the training that this object had, as the destructor does.
  training& operator=(training&& other) noexcept;
  /// Stops a training that still runs, and waits for its end.
  ~training();

  /// Full path of the run folder.
  const std::filesystem::path& run_dir() const;
  /// What callbacks were given last; after the end, with the final status.
  dlrun::progress progress() const;
  /// As training_control::stop().
  void stop(const std::string& reason);
  /// Blocks until the end. Then nothing of the run is left but its folder, which others may use. A
  /// training that failed has a report too, with the reason. May be called again.
  /// @returns an error only when the roles could not be started at all.
  result<report> wait();

private:
  class impl;
  explicit training(std::unique_ptr<impl> impl);

  std::unique_ptr<impl> impl_;
};

/// Does the work of a role, if this process is one: the processes of a run execute this program
/// again. Call it in the first lines of main(), after registering layers, readers and metrics.
/// @returns the exit code when this process is a role, which main() must return at once; nothing in
/// the program that the user started.
[[nodiscard]] std::optional<int> run_role(int argc, char** argv);

/// The whole command line of `dlrun`, for a program that adds layers, readers or metrics: main()
/// registers them and returns the result of this function. Calls run_role(), and takes over SIGINT
/// and SIGTERM. Call it before the program makes a thread: `train --detach` forks, and both
/// processes return from here. @returns the exit code (docs/cli.md).
int run_command_line(int argc, char** argv);

} // namespace dlrun
