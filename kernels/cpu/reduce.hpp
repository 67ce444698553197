/// Sum of two gradients: the one operation of the canonical reduction tree.
#pragma once

#include <span>

namespace dlrun::kernels::cpu {

/// out[i] = a[i] + b[i]. All three have one size; `out` may be `a` or `b`, and must not overlap them
/// otherwise. Float addition commutes, so who is `a` and who is `b` changes no bit (NaN payloads aside).
void add(std::span<const float> a, std::span<const float> b, std::span<float> out);

} // namespace dlrun::kernels::cpu
