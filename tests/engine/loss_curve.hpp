/// Trains the first steps of an example job on one thread with the parts that the roles are made
/// of, and gives the loss of each step.
#pragma once

#include "data/job_data.hpp"
#include "data/sampler.hpp"
#include "engine/model.hpp"
#include "engine/network.hpp"
#include "engine/optimizer.hpp"
#include "proto/job_spec.pb.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine::testing {

/// One job in one thread: the slots of a step are computed in turn and summed along the canonical
/// tree, and the optimizer divides by the records of the step, as workers and PS shards do it.
class loss_curve {
public:
  /// Opens examples/fashion_mnist/<example>.yaml under `source_dir` and the data it names.
  /// `overrides` are as in dlrun train --set.
  static result<std::unique_ptr<loss_curve>> open(const std::filesystem::path& source_dir,
                                                  const std::string& example,
                                                  std::span<const std::string> overrides = {});

  /// Mean losses of steps 0..steps-1, from the initial parameters on.
  result<std::vector<double>> train(std::uint64_t steps);

  /// What another program needs to train the same: in `folder`, `<example>.parameters.f32` (the
  /// flat vector of initial parameters), `<example>.tensors.txt` (lines "name offset extent..."),
  /// `<example>.records.u32` (record indices of steps 0..steps-1, in order). Raw values in this
  /// host's byte order.
  result<void> dump_inputs(const std::filesystem::path& folder, std::uint64_t steps) const;

private:
  loss_curve(std::string example, const spec::JobSpec& spec, std::shared_ptr<const model> model,
             optimizer optimizer, std::shared_ptr<const data::dataset> records);
  result<void> sum_slots(step_id step, std::uint32_t begin, std::uint32_t end, std::span<float> out);
  result<void> compute_slot(step_id step, std::uint32_t slot, std::span<float> out);
  void update(step_id step, std::span<const float> sum);

  std::string example_;
  std::uint64_t seed_;
  std::shared_ptr<const model> model_;
  optimizer optimizer_;
  std::shared_ptr<const data::dataset> dataset_;
  data::sampler sampler_;
  network network_;
  std::vector<float> parameters_;
  std::vector<float> velocity_; ///< optimizer state, in the places of the parameters
};

} // namespace dlrun::engine::testing
