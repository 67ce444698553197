/// From bytes to the floats a model is trained on.
#pragma once

#include <array>

namespace dlrun::data {

/// The value of each byte: (byte / 255 - mean) / std, every operation rounded to float32, with mean and std
/// rounded first. These are the bits that numpy and PyTorch give for float32 arrays and Python constants.
std::array<float, 256> normalisation_table(double mean, double std);

} // namespace dlrun::data
