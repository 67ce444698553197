/// A trained model: its outputs and its weights.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/shape.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlrun {

/// Which model.
struct model_choice {
  std::string path;                     ///< folder of a run that nobody is using, or a safetensors file
  std::string spec_file{};              ///< of a file: the job it belongs to
  std::vector<std::string> overrides{}; ///< path=value, of the specification
  std::optional<std::uint64_t> step{};  ///< of a run: its version after that many steps; the newest otherwise
  bool best = false; ///< of a run: the version that its report calls the best; no `step` then
};

/// A tensor of a model.
struct named_tensor {
  std::string name;              ///< as in PyTorch's state_dict, e.g. "linear1.weight"
  shape extents;                 ///< outermost first
  std::span<const float> values; ///< in the order of `extents`; belongs to the model
};

/// Immutable, in memory. Thread-safe, but for predict(): one thread at a time.
class trained_model {
public:
  /// Reads it; nothing is written. @returns bad_usage for a path that is neither, a folder in use,
  /// a version that is not on disk; bad_spec; bad_data for a file that does not fit;
  /// storage_damaged.
  static result<trained_model> load(const model_choice& choice);

  /// What was moved from can only be destroyed or assigned to.
  trained_model(trained_model&& other) noexcept;
  /// As above.
  trained_model& operator=(trained_model&& other) noexcept;
  ~trained_model();

  /// Of one record, images channels first.
  const shape& input_shape() const;
  /// Of what the last layer gives for one record.
  const shape& output_shape() const;
  /// Steps it was trained for; nothing for a weights file.
  std::optional<std::uint64_t> step() const;
  /// Parameters and running statistics, in the order of the layers.
  std::vector<named_tensor> tensors() const;

  /// `records` is (n, input_shape...), normalised as in training (data.train.normalize), for any n
  /// from 1.
  /// @returns (n, output_shape...): scores before a softmax or sigmoid, as `dlrun predict` prints
  /// them. Errors: bad_usage when `records` are not whole ones; bad_data for a value that a layer
  /// cannot take.
  result<std::vector<float>> predict(std::span<const float> records);
  /// Writes a safetensors file, which appears whole or not at all. @returns system.
  result<void> save(const std::filesystem::path& file) const;

private:
  class impl;
  explicit trained_model(std::unique_ptr<impl> impl);

  std::unique_ptr<impl> impl_;
};

} // namespace dlrun
