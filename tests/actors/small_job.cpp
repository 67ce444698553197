#include "tests/actors/small_job.hpp"

#include "tests/job/spec_text.hpp"

namespace dlrun::test {

std::shared_ptr<const common::job_context> small_job(const std::filesystem::path& run_dir,
                                                     const std::vector<std::string>& overrides,
                                                     std::vector<spec::TrainSpec> revisions) {
  const auto text = R"(model: {input: [64], layers: [{linear: {out_features: 20}}]}
data: {train: {records: images, labels: labels}}
train: {epochs: 4, microbatch_size: 2, microbatches_per_step: 2, optimizer: {sgd: {lr: 0.1, momentum: 0.9}}}
cluster: {workers: 1, ps_shards: 1}
durability: {log: every_step}
)";
  return common::make_job_context({.spec = parse(text, overrides).value(),
                                   .revisions = std::move(revisions),
                                   .train_records = 10,
                                   .run_dir = run_dir})
      .value();
}

} // namespace dlrun::test
