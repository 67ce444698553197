/// Trained models: load one, compute its outputs, read and write its weights.
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

/// Names the model to load: a version of a run, or a weights file.
struct model_choice {
  std::string path;                     ///< folder of a run that nobody is using, or a safetensors file
  std::string spec_file{};              ///< for a weights file: the job file that it belongs to
  std::vector<std::string> overrides{}; ///< "path=value", changes to the specification
  std::optional<std::uint64_t> step{};  ///< for a run: the version after that many steps; else the newest
  bool best = false; ///< for a run: the version that its report calls the best; not together with `step`
};

/// A tensor of a model.
struct named_tensor {
  std::string name;              ///< as in PyTorch's state_dict, e.g. "linear1.weight"
  shape extents;                 ///< outermost first
  std::span<const float> values; ///< row by row; memory of the model
};

/// A trained model in memory. Immutable. Thread-safe, except that one thread at a time may call
/// predict().
class trained_model {
public:
  /// Loads a model and writes nothing. @returns bad_usage for a path that is neither a run nor a
  /// weights file, a folder in use, a version that is not on disk, and overrides that make another
  /// model; bad_spec; bad_data for a file that does not fit; storage_damaged; system.
  static result<trained_model> load(const model_choice& choice);

  /// A moved-from object can only be destroyed or assigned to.
  trained_model(trained_model&& other) noexcept;
  /// As the move constructor.
  trained_model& operator=(trained_model&& other) noexcept;
  ~trained_model();

  /// Shape of one record, images channels first.
  const shape& input_shape() const;
  /// Shape of the output of the last layer for one record.
  const shape& output_shape() const;
  /// Steps that the model was trained for; nothing for a weights file.
  std::optional<std::uint64_t> step() const;
  /// Parameters and running statistics, in the order of the layers.
  std::vector<named_tensor> tensors() const;

  /// Computes the outputs for `records`, (n, input_shape...) with n >= 1, which the caller has
  /// normalised as in training (data.train.normalize).
  /// @returns (n, output_shape...), the outputs of the last layer: scores before the softmax or
  /// sigmoid that the loss applies. Errors: bad_usage when `records` holds no whole number of
  /// records; bad_data for a value that a layer cannot take.
  result<std::vector<float>> predict(std::span<const float> records);
  /// Writes a safetensors file, which appears whole or not at all. @returns system.
  result<void> save(const std::filesystem::path& file) const;

private:
  class impl;
  explicit trained_model(std::unique_ptr<impl> impl);

  std::unique_ptr<impl> impl_;
};

} // namespace dlrun
