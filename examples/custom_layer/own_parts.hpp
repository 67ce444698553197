/// What this program adds to dlrun, each under the name that spiral.yaml uses.
#pragma once

#include <dlrun/error.hpp>

/// Layer `swish`: x * sigmoid(beta * x), with a beta that is trained. Option `beta`: its initial
/// value.
dlrun::result<void> register_swish();
/// Metric `worst_class`: the accuracy on the class that is recognised worst.
dlrun::result<void> register_worst_class();
/// Data format `points`: a text file, in each line two coordinates and the number of a class.
dlrun::result<void> register_points();
