/// What training makes small: how far the outputs of a model are from the targets.
#pragma once

#include "engine/layer_description.hpp"

#include <cstdint>
#include <dlrun/batch.hpp>
#include <dlrun/error.hpp>
#include <dlrun/metric.hpp>
#include <dlrun/shape.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace dlrun::spec {
class ModelSpec;
}

namespace dlrun::engine {

/// A loss whose arguments and shapes are known. Immutable and thread-safe.
class loss {
public:
  virtual ~loss() = default;
  loss() = default;
  loss(const loss&) = delete;
  loss& operator=(const loss&) = delete;

  /// As the specification names it, e.g. "cross_entropy".
  virtual std::string name() const = 0;
  virtual target_kind targets() const = 0;
  virtual output_kind outputs() const = 0;
  /// What it computes.
  virtual loss_description describe() const = 0;
  /// Numbers in the target of one record: floats of batch::values, or 1 for a class number.
  virtual std::int64_t target_values() const = 0;

  /// A target that the loss does not take.
  struct bad_target {
    std::size_t record = 0; ///< its place in the batch
    std::string what;       ///< "has the target 2, but ...; correct ..."
  };
  /// The first of `batch`, whose sizes are right, that cannot be compared with outputs.
  virtual std::optional<bad_target> find_bad(const batch& batch) const = 0;
  /// @returns bad_data naming that record's place in the batch and what is wrong with its target.
  result<void> check(const batch& batch) const;

  /// `outputs` is (batch.size, outputs of a record); check() has passed. @returns the SUM over the
  /// records of each one's loss, in double, added in the order of the records. Writes the gradient
  /// of that sum by the outputs (=), same shape, unless `gradient` is empty.
  virtual double forward(std::span<const float> outputs, const batch& batch,
                         std::span<float> gradient) const = 0;
};

/// The loss of a model whose last layer gives `output` for a record; cross_entropy where none is
/// written.
/// @returns bad_spec naming the loss, the last layer, the shape and the way out.
result<std::unique_ptr<const loss>> make_loss(const spec::ModelSpec& spec, const shape& output);

} // namespace dlrun::engine
