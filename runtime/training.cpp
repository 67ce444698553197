#include <dlrun/training.hpp>

#include "actors/agent/process_launcher.hpp"
#include "actors/common/clock.hpp"
#include "data/sampler.hpp"
#include "job/choices.hpp"
#include "observability/told_evaluation.hpp"
#include "runtime/hosts_run.hpp"
#include "runtime/local_run.hpp"
#include "runtime/new_run.hpp"
#include "runtime/resumption.hpp"
#include "runtime/role_entry.hpp"
#include "runtime/thrown_text.hpp"

#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace dlrun {
namespace {

double seconds_since(protocol::time_point start, protocol::time_point now) {
  return protocol::to_seconds(now - start);
}

dlrun::progress to_progress(const agent::run_snapshot& now, double seconds) {
  dlrun::progress made{.status = now.status,
                       .step = now.step,
                       .durable_step = now.durable_step,
                       .steps = now.steps,
                       .seconds = seconds};
  if (!now.train) return made;
  made.measured = true;
  made.loss = now.train->step_loss;
  made.epoch = now.train->epoch;
  made.epoch_loss = now.train->loss;
  made.epoch_metrics = now.train->metrics;
  return made;
}

/// Who executes roles must know how. @returns bad_usage with the way out.
result<void> check_role_program(const spec::JobSpec& spec, const training_options& options) {
  if (std::getenv(agent::role_variable) != nullptr)
    return fail(error_code::bad_usage,
                "this process is a role of a run, and starts no other: main() must return what "
                "dlrun::run_role(argc, argv) gives before it does anything else");
  if (job::placement_of(spec) == job::placement::threads || !options.role_program.empty() ||
      runtime::role_entry_passed())
    return {};
  return fail(
      error_code::bad_usage,
      "the processes of a run execute this program: call dlrun::run_role(argc, argv) at the beginning "
      "of main(), or name another program in training_options::role_program, or set "
      "cluster.placement: threads");
}

} // namespace

/// Shared with the thread that runs it, which is joined by the destructor.
class training::impl final : public runtime::run_observer, public training_control {
public:
  impl(runtime::prepared_job job, runtime::run_folder folder, dlrun::incarnation coordinator,
       training_options options)
      : job_{std::move(job)}
      , folder_{std::move(folder)}
      , run_dir_{folder_->path()}
      , options_{std::move(options)}
      , coordinator_{coordinator}
      , outcome_{finished_.get_future().share()} {
    progress_.status = "running";
    progress_.steps = job_.steps;
  }

  ~impl() override {
    stop("the program ended the training");
    if (thread_.joinable()) thread_.join();
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void begin() {
    thread_ = std::thread{[this] {
      auto ended = runtime::run_locally(job_,
                                        {.run_dir = run_dir_,
                                         .coordinator = coordinator_,
                                         .role_program = options_.role_program.string(),
                                         .hosts = {},
                                         .is_same_job = is_same_job_,
                                         .change = change_,
                                         .is_new = is_new_,
                                         .home = std::move(home_)},
                                        *this);
      folder_.reset(); // others may use it now
      finished_.set_value(std::move(ended));
    }};
  }

  /// Before begin(): the folder was made for this training.
  void folder_is_new() { is_new_ = true; }
  /// Before begin(): the run goes on, and is changed to this.
  void goes_on(std::optional<runtime::run_change> change, bool is_same_job,
               std::shared_ptr<runtime::root_home> home) {
    change_ = std::move(change);
    home_ = std::move(home);
    is_same_job_ = is_same_job;
  }

  void first_event(std::string event, std::string text) {
    first_.push_back({std::move(event), "root", 0, 1, 0, std::move(text)});
  }

  const std::filesystem::path& run_dir() const { return run_dir_; }
  dlrun::progress progress() const {
    const std::scoped_lock lock{mutex_};
    return progress_;
  }
  result<report> wait() const { return outcome_.get(); }

  void stop(const std::string& reason) override {
    const std::scoped_lock lock{mutex_};
    if (!stop_reason_) stop_reason_ = reason.empty() ? "stopped by the program" : reason;
  }

  // run_observer: on the training's own thread.
  void update(const agent::run_snapshot& now, protocol::time_point at) override {
    tell_first();
    auto made = to_progress(now, seconds_since(started_, at));
    tell([&](training_callback& one) { one.on_progress(made, *this); });
    const std::scoped_lock lock{mutex_};
    progress_ = std::move(made);
  }

  void event(const protocol::job_event& event) override {
    tell_first();
    const auto at = protocol::time_point{protocol::duration{event.at_us}};
    const training_event told{.event = event.event,
                              .role = std::string{protocol::to_string(event.role.kind)},
                              .index = event.role.index,
                              .incarnation = event.incarnation.value,
                              .seconds = seconds_since(started_, at),
                              .text = event.text,
                              .step =
                                  event.numbers.has_step ? std::optional{event.numbers.step} : std::nullopt,
                              .after_ms = static_cast<double>(event.numbers.after_us) / 1000.0};
    tell([&](training_callback& one) { one.on_event(told, *this); });
    auto evaluated = observability::told_evaluation(event);
    if (!evaluated) return;
    evaluated->epoch = epochs_at({evaluated->step});
    tell([&](training_callback& one) { one.on_evaluation(*evaluated, *this); });
  }

  void waits(const std::string& text) override {
    tell_first();
    const training_event told{"waiting", "root", 0, 1, seconds_since(started_, common::now()), text};
    tell([&](training_callback& one) { one.on_event(told, *this); });
  }

  std::optional<runtime::stop_wish> asked_to_stop() override {
    const std::scoped_lock lock{mutex_};
    if (!stop_reason_) return std::nullopt;
    return runtime::stop_wish{*stop_reason_, {}};
  }

  void summary(const dlrun::report& report, const std::string&) override {
    tell_first();
    {
      const std::scoped_lock lock{mutex_};
      progress_.status = to_string(report.status);
      progress_.step = report.steps;
    }
    tell([&](training_callback& one) { one.on_end(report); });
  }

private:
  void tell_first() {
    for (const auto& event : std::exchange(first_, {}))
      tell([&](training_callback& one) { one.on_event(event, *this); });
  }

  /// How often each record was trained on by then.
  double epochs_at(version_id version) const {
    const data::sampler sampler{data::sampler_options_from(job_.spec.train(), job_.train_records)};
    return static_cast<double>(version.value) / static_cast<double>(sampler.steps_per_epoch());
  }

  template <class Call>
  void tell(const Call& call) {
    for (const auto& one : options_.callbacks) {
      try {
        call(*one);
      } catch (...) {
        stop("a callback threw: " + runtime::thrown_text());
      }
    }
  }

  const runtime::prepared_job job_;
  std::optional<runtime::run_folder> folder_; ///< held until the end; of the training's thread
  const std::filesystem::path run_dir_;
  const training_options options_;
  const dlrun::incarnation coordinator_;
  bool is_new_ = false;
  std::optional<runtime::run_change> change_;
  bool is_same_job_ = false;
  std::shared_ptr<runtime::root_home> home_;
  const protocol::time_point started_ = common::now();
  std::vector<training_event> first_; ///< told before all others
  mutable std::mutex mutex_;
  dlrun::progress progress_;
  std::optional<std::string> stop_reason_;
  std::promise<result<report>> finished_;
  std::shared_future<result<report>> outcome_;
  std::thread thread_;
};

training::training(std::unique_ptr<impl> impl)
    : impl_{std::move(impl)} {}
training::training(training&&) noexcept = default;
training& training::operator=(training&&) noexcept = default;
training::~training() = default;

result<training> training::start(const job_spec& job, training_options options) {
  if (auto fine = check_role_program(job.message(), options); !fine) return tl::unexpected(fine.error());
  try {
    auto prepared = runtime::prepare_new_job(job.message());
    if (!prepared) return tl::unexpected(prepared.error());
    if (auto fits = runtime::check_for_hosts(prepared->spec, std::nullopt); !fits)
      return tl::unexpected(fits.error());
    auto run = runtime::begin_run(*prepared, options.run_dir.string(),
                                  {.role_program = options.role_program.string()});
    if (!run) return tl::unexpected(run.error());
    auto made = std::make_unique<impl>(std::move(*prepared), std::move(run->folder), dlrun::incarnation{1},
                                       std::move(options));
    made->folder_is_new();
    if (run->device)
      made->first_event(
          "device", fmt::format("cluster.device: auto is {}: {}", run->device->device, run->device->reason));
    if (run->durability)
      made->first_event("durability", fmt::format("durability.log: auto is {}: {}", run->durability->log,
                                                  run->durability->reason));
    made->begin();
    return training{std::move(made)};
  } catch (...) { // a reader or layer of the program
    return fail(error_code::bad_usage, "cannot prepare the job: " + runtime::thrown_text());
  }
}

result<training> training::resume(const std::filesystem::path& run_dir, const resume_options& how,
                                  training_options options) {
  try {
    auto resumed = runtime::prepare_resumption(
        run_dir, how, {}, {}, [&](const spec::JobSpec& job) { return check_role_program(job, options); });
    if (!resumed) return tl::unexpected(resumed.error());
    if (!resumed->job)
      return fail(
          error_code::bad_usage,
          fmt::format("the run in '{}' is completed: there is nothing left to train (see report.json there)",
                      resumed->folder.path().string()));
    auto made = std::make_unique<impl>(std::move(*resumed->job), std::move(resumed->folder),
                                       resumed->coordinator, std::move(options));
    if (resumed->replicas && resumed->replicas->is_auto)
      made->first_event("replicas", fmt::format("durability.replicas: auto is {}: {}",
                                                resumed->replicas->replicas, resumed->replicas->reason));
    made->goes_on(std::move(resumed->change), resumed->is_same_job, std::move(resumed->home));
    if (!resumed->left_behind.empty()) made->first_event("store-missing", resumed->left_behind);
    made->begin();
    return training{std::move(made)};
  } catch (...) {
    return fail(error_code::bad_usage, "cannot prepare the job: " + runtime::thrown_text());
  }
}

const std::filesystem::path& training::run_dir() const { return impl_->run_dir(); }
dlrun::progress training::progress() const { return impl_->progress(); }
void training::stop(const std::string& reason) { impl_->stop(reason); }
result<report> training::wait() { return impl_->wait(); }

} // namespace dlrun
