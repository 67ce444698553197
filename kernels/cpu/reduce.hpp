/// Sum of two gradients, the one operation of the canonical reduction tree; and whether a gradient
/// is one.
#pragma once

#include <span>

namespace dlrun::kernels::cpu {

/// out[i] = a[i] + b[i]. All three have one size; `out` may be `a` or `b`, and must not overlap
/// them otherwise. Float addition commutes, so who is `a` and who is `b` changes no bit (NaN
/// payloads aside).
void add(std::span<const float> a, std::span<const float> b, std::span<float> out);

/// Whether no value is NaN or infinite. One pass, no branches.
bool all_finite(std::span<const float> values);

} // namespace dlrun::kernels::cpu
