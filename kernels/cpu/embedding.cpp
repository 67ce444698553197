#include "kernels/cpu/embedding.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <numeric>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

void check_embedding(const embedding_geometry& g, std::size_t indices, std::size_t table, std::size_t y) {
  DLRUN_CHECK(g.fields >= 1 && g.dim >= 1 && indices % static_cast<std::size_t>(g.fields) == 0 &&
                  table % static_cast<std::size_t>(g.dim) == 0 &&
                  y == indices * static_cast<std::size_t>(g.dim),
              "an embedding of {} indices in a table of {} floats to {}, {} fields of {} values", indices,
              table, y, g.fields, g.dim);
}

/// Where value 0 of the place `place` lies; the next one is `fields` floats on.
std::int64_t start_of(const embedding_geometry& g, std::int64_t place) {
  return place / g.fields * g.fields * g.dim + place % g.fields;
}

} // namespace

void embedding(const embedding_geometry& g, std::span<const std::int64_t> indices,
               std::span<const float> table, std::span<float> y) {
  check_embedding(g, indices.size(), table.size(), y.size());
  for (std::size_t place = 0; place < indices.size(); ++place) {
    const float* const row = table.data() + indices[place] * g.dim;
    float* const out = y.data() + start_of(g, static_cast<std::int64_t>(place));
    for (std::int64_t d = 0; d < g.dim; ++d) out[d * g.fields] = row[d];
  }
}

void embedding_backward(const embedding_geometry& g, std::span<const std::int64_t> indices,
                        std::span<const float> dy, std::span<float> dtable) {
  check_embedding(g, indices.size(), dtable.size(), dy.size());
  std::ranges::fill(dtable, 0.0F);
  // Places of one row stand together then, in their order: a double sum of one row is enough.
  std::vector<std::size_t> places(indices.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t place) { return indices[place]; });
  std::vector<double> sum(static_cast<std::size_t>(g.dim));
  for (auto at = places.begin(); at != places.end();) {
    const std::int64_t row = indices[*at];
    std::ranges::fill(sum, 0.0);
    for (; at != places.end() && indices[*at] == row; ++at) {
      const float* const gradient = dy.data() + start_of(g, static_cast<std::int64_t>(*at));
      for (std::int64_t d = 0; d < g.dim; ++d)
        sum[static_cast<std::size_t>(d)] += static_cast<double>(gradient[d * g.fields]);
    }
    std::ranges::transform(sum, dtable.begin() + row * g.dim, [](double v) { return static_cast<float>(v); });
  }
}

} // namespace dlrun::kernels::cpu
