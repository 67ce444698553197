/// Between channels first and channels last.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// `to`(batch, columns, rows) = transpose of each matrix of `from`(batch, rows, columns). Not in
/// place.
void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, std::span<const float> from,
               std::span<float> to);

} // namespace dlrun::kernels::cpu
