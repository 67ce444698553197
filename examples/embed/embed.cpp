// A program that trains a model of its own, watches it, and uses it: is a point inside a circle?
//
//   embed DATA.csv RUN_DIR
//
// Workers and PS shards are processes that execute this same program; kill any of them while it
// runs.
#include <cstdio>
#include <dlrun/dlrun.hpp>

namespace {

/// The job, as a job file would say it (docs/spec.md).
dlrun::spec::JobSpec make_job(const std::string& data) {
  dlrun::spec::JobSpec job;
  job.set_name("circle");

  auto& model = *job.mutable_model();
  model.add_input(2);
  model.add_layers()->mutable_linear()->set_out_features(32);
  model.add_layers()->mutable_tanh();
  model.add_layers()->mutable_linear()->set_out_features(2);

  auto& train_data = *job.mutable_data()->mutable_train();
  train_data.set_format("csv");
  train_data.set_records(data);
  train_data.mutable_csv()->add_target("inside");
  job.mutable_data()->mutable_validation()->set_split(0.2);

  auto& train = *job.mutable_train();
  train.set_epochs(40);
  train.set_microbatch_size(8);
  train.mutable_optimizer()->mutable_adam()->set_lr(0.01);
  job.mutable_durability()->set_log("every_step");
  return job;
}

/// Tells what happens, and ends the training when the model is good enough.
class watcher final : public dlrun::training_callback {
public:
  void on_progress(const dlrun::progress& now, dlrun::training_control& control) override {
    if (!now.measured || now.epoch == told_) return;
    told_ = now.epoch;
    if (now.epoch % 10 == 0)
      std::printf("epoch %llu: loss %.4f\n", static_cast<unsigned long long>(now.epoch), now.epoch_loss);
    if (now.loss < 0.001) control.stop("the model is good enough");
  }
  void on_event(const dlrun::training_event& event, dlrun::training_control&) override {
    std::printf("%6.2f s  %s: %s\n", event.seconds, event.event.c_str(), event.text.c_str());
  }

private:
  std::uint64_t told_ = 0;
};

int fail(const dlrun::error& why) {
  std::fprintf(stderr, "embed: %s\n", why.message.c_str());
  return 1;
}

} // namespace

int main(int argc, char** argv) {
  // First of all: is this process a worker or another role of a training?
  if (const auto role = dlrun::run_role(argc, argv)) return *role;

  if (argc != 3) {
    std::fprintf(stderr, "usage: embed DATA.csv RUN_DIR\n");
    return 2;
  }
  const auto job = dlrun::job_spec::build(make_job(argv[1]));
  if (!job) return fail(job.error());

  dlrun::training_options options;
  options.run_dir = argv[2];
  options.callbacks.push_back(std::make_shared<watcher>());
  auto training = dlrun::training::start(*job, options);
  if (!training) return fail(training.error());
  const auto report = training->wait();
  if (!report) return fail(report.error());
  if (report->status != dlrun::run_status::completed) return fail({{}, report->reason});
  std::printf("%llu steps, %llu samples missing, %llu duplicated, validation accuracy %.3f\n",
              static_cast<unsigned long long>(report->steps),
              static_cast<unsigned long long>(report->samples_missing),
              static_cast<unsigned long long>(report->samples_duplicated),
              report->validation->metrics.front().second);

  auto model = dlrun::trained_model::load({.path = argv[2]});
  if (!model) return fail(model.error());
  const std::vector<float> points = {0.0F, 0.1F, 0.9F, 0.9F}; // the middle, a corner
  const auto scores = model->predict(points);
  if (!scores) return fail(scores.error());
  for (std::size_t i = 0; i < 2; ++i)
    std::printf("(%.1f, %.1f): class %d\n", static_cast<double>(points[2 * i]),
                static_cast<double>(points[2 * i + 1]), (*scores)[2 * i + 1] > (*scores)[2 * i] ? 1 : 0);
  return 0;
}
