/// Between a model's flat vector and a weights file: PyTorch's state_dict under its names.
#pragma once

#include "engine/parameter_layout.hpp"
#include "proto/job_spec.pb.h"
#include "weights/safetensors_file.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace dlrun::weights {

/// How much of a model a file has to hold.
enum class fit : std::uint8_t {
  whole, ///< every tensor of the model, and no other
  part   ///< any of them; tensors of other names are passed over. Shapes must be equal all the same
};

/// What train.init_strict asks for.
fit wanted_fit(const spec::TrainSpec& train);

/// Can the parameters and buffers of a model be taken from `file`? PyTorch's counters,
/// `num_batches_tracked`, may be there and are not used.
/// @returns bad_data naming each tensor that is missing, of another shape or dtype, or too many, at
///   most 20.
result<void> check_fits(const safetensors_file& file, const engine::parameter_layout& layout, fit wanted);

/// Is each number of the tensors that are taken finite as a float? `file` must have passed
/// check_fits(). Reads them all. @returns bad_data naming file, tensor, place and number; as
/// safetensors_file::read().
result<void> check_finite(const safetensors_file& file, const engine::parameter_layout& layout);

/// Can the tensors of this model be written to a file that can be read again? @returns bad_spec.
result<void> check_writable(const engine::parameter_layout& layout);

/// Overwrites those of the floats [offset, offset + part.size()) of the flat vector that `file`
/// has; the others stay. `file` must have passed check_fits(). Reads no more of it. @returns as
/// safetensors_file::read().
result<void> read_part(const safetensors_file& file, const engine::parameter_layout& layout,
                       std::uint64_t offset, std::span<float> part);

/// Writes the parameters and buffers in `flat` (layout.flat_size() floats), so that `file` appears
/// whole or not at all. Beside running statistics goes `num_batches_tracked`, with the number
/// `updates`, as in PyTorch. @returns as write_safetensors().
result<void> write_weights(const std::filesystem::path& file, const engine::parameter_layout& layout,
                           std::span<const float> flat, std::uint64_t updates,
                           const std::map<std::string, std::string>& metadata);

} // namespace dlrun::weights
