/// Records through a model, microbatch by microbatch: the one loop behind every evaluation and
/// prediction.
#pragma once

#include "data/dataset.hpp"
#include "data/prefetcher.hpp"
#include "engine/cuda/compute_place.hpp"
#include "inference/compute_in_order.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/named_values.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dlrun::inference {

/// What a model came to on a data set.
struct evaluation {
  double loss_sum = 0; ///< over the records
  named_values metrics;
  std::uint64_t records = 0;

  double mean_loss() const { return loss_sum / static_cast<double>(records); }
};

/// Records without targets.
struct record_source {
  std::uint64_t count = 0;
  /// Overwrites the second argument with the records at these places, row by row.
  std::function<result<void>(std::span<const std::uint64_t>, std::span<float>)> read;
};
record_source records_of(const data::dataset& data);

/// How records are gone through.
struct pass_options {
  std::uint64_t microbatch_size = 1;
  engine::compute_place place{};        ///< part of what fixes the bits
  std::size_t microbatches_at_once = 1; ///< changes no bit; with 1 the calling thread computes
};
/// As the job of `spec` computes, on the processor.
pass_options options_from(const spec::JobSpec& spec, std::size_t microbatches_at_once = 1);

/// A model that goes through records in their order, in microbatches of one size, and adds up in
/// that order: whoever does it gets the same bits. Keeps what it allocated from one pass to the
/// next. One pass at a time.
class forward_pass {
public:
  forward_pass(std::shared_ptr<const engine::model> model, const pass_options& options);

  /// Loss and metrics of `parameters` (flat layout) on all of `data`, which check_fits(). @returns
  /// interrupted soon after `*cancelled` (may be null) is set; as make_computer_at(),
  /// computer::evaluate() and dataset::read().
  result<evaluation> evaluate(std::span<const float> parameters, const data::dataset& data,
                              const std::atomic<bool>* cancelled = nullptr);

  /// Calls `make(places, outputs)` for each microbatch, on any thread: the places of its records,
  /// and what the last layer gives for each, row by row. `take` gets what it made, in the order of
  /// the records, on the calling thread. @returns as make_computer_at(), computer::predict(),
  /// `records.read` and `take`.
  template <class Made>
  result<void>
  predict(std::span<const float> parameters, const record_source& records,
          const std::function<Made(std::span<const std::uint64_t>, std::span<const float>)>& make,
          const std::function<result<void>(Made&&)>& take) {
    return run<Made>(
        parameters, records.count,
        [&](lane& on, std::span<const std::uint64_t> places) -> result<Made> {
          const auto outputs = outputs_of(on, records, places);
          if (!outputs) return tl::unexpected(outputs.error());
          return make(places, *outputs);
        },
        take);
  }

private:
  /// What one thread computes with.
  struct lane {
    std::unique_ptr<engine::computer> computer;
    std::vector<std::uint64_t> places;
    data::microbatch microbatch;
    std::vector<float> outputs;
  };

  /// For so many microbatches, all computing from `parameters`.
  result<void> make_lanes(std::uint64_t microbatches, std::span<const float> parameters);
  result<std::span<const float>> outputs_of(lane& on, const record_source& records,
                                            std::span<const std::uint64_t> places);
  result<std::vector<float>> metrics_of(lane& on, const data::dataset& data,
                                        std::span<const std::uint64_t> places);

  template <class Made, class Compute>
  result<void> run(std::span<const float> parameters, std::uint64_t records, const Compute& compute,
                   const std::function<result<void>(Made&&)>& take) {
    const data::validation_sampler order{records, options_.microbatch_size};
    if (auto made = make_lanes(order.slots(), parameters); !made) return made;
    return compute_in_order<Made>(
        order.slots(), lanes_.size(),
        [&](std::size_t thread, std::uint64_t slot) {
          auto& on = *lanes_[thread];
          order.records(slot, on.places);
          return compute(on, std::span<const std::uint64_t>{on.places});
        },
        [&](std::uint64_t, Made&& made) { return take(std::move(made)); });
  }

  std::shared_ptr<const engine::model> model_;
  pass_options options_;
  std::vector<std::unique_ptr<lane>> lanes_;
};

} // namespace dlrun::inference
