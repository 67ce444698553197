/// Rows of a table by their numbers, and the gradient of the table.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// `fields` numbers of rows a record; a row has `dim` values.
struct embedding_geometry {
  std::int64_t fields = 0, dim = 0;
  bool operator==(const embedding_geometry&) const = default;
};

/// y(record, d, field) = table(indices(record, field), d). Each index is a row of `table`(rows,
/// dim).
void embedding(const embedding_geometry& geometry, std::span<const std::int64_t> indices,
               std::span<const float> table, std::span<float> y);

/// dtable = the sum, in double and in the order of the records, of dy(record, d, field) over the
/// places that name the row; zero for rows that none names. Overwritten.
void embedding_backward(const embedding_geometry& geometry, std::span<const std::int64_t> indices,
                        std::span<const float> dy, std::span<float> dtable);

} // namespace dlrun::kernels::cpu
