/// The weights file that a training starts from: train.init_from.
#pragma once

#include "engine/parameter_layout.hpp"
#include "proto/job_spec.pb.h"
#include "weights/safetensors_file.hpp"

#include <string>

namespace dlrun::weights {

struct initial_weights {
  safetensors_file file;
  std::string sha256; ///< of the whole file, in hexadecimal digits
};

/// Opens the file that `train` names (it must), reads it once as a whole, and checks it: does it
/// fit the model, are its numbers finite, and is it the file of train.init_sha256, where that is
/// written?
/// @returns bad_data naming the file and what is wrong with it, system.
result<initial_weights> open_initial_weights(const spec::TrainSpec& train,
                                             const engine::parameter_layout& layout);

} // namespace dlrun::weights
