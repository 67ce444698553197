#include "kernels/cuda/index.hpp"

#include "kernels/cuda/bf16.hpp"
#include "kernels/cuda/elementwise.hpp"

namespace dlrun::kernels::cuda {
namespace {

// ---- numbers of rows

__global__ void read_indices_each(read_indices s) {
  for (std::int64_t i = thread_number(); i < s.count; i += thread_count()) {
    const float value = s.values[i];
    const bool fits = value >= 0.0F && value < 0x1p63F; // in std::int64_t
    const std::int64_t row = fits ? static_cast<std::int64_t>(value) : 0;
    const bool good = fits && row < s.rows && static_cast<float>(row) == value;
    s.to[i] = good ? row : 0;
    if (!good) atomicMin(reinterpret_cast<long long*>(s.first_bad), static_cast<long long>(i));
  }
}

// ---- rows by their numbers

/// Where value 0 of the place `place` lies in y; the next one is `fields` floats on.
__device__ std::int64_t start_of(const cpu::embedding_geometry& g, std::int64_t place) {
  return place / g.fields * g.fields * g.dim + place % g.fields;
}

/// y(record, d, field), element by element.
template <class Number>
__global__ void embedding_each(embedding_forward s, std::int64_t count) {
  const auto& g = s.geometry;
  auto* const y = static_cast<Number*>(s.y);
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const std::int64_t record = i / (g.fields * g.dim);
    const std::int64_t d = i / g.fields % g.dim;
    y[i] = stored_as<Number>(s.table[s.indices[record * g.fields + i % g.fields] * g.dim + d]);
  }
}

// ---- places in the order of their rows
//
// Bitonic sorting (Batcher 1968) in the form in which every comparison puts the smaller first: runs
// of `size` places are made of two sorted ones by comparing each place with its mirror image in the
// run, then with what is size / 4, size / 8, ..., 1 places on. What would lie behind the last place
// is larger than all and never moves, so that any number of places will do. Which are compared
// depends on the count alone. Rows that are the same stay in the order of their places.

constexpr std::int64_t chunk_places = 1024; ///< that a block sorts in shared memory

/// A place with the row that it names.
struct named_place {
  std::int64_t row, place;
};
__device__ bool comes_before(const named_place& a, const named_place& b) {
  return a.row < b.row || (a.row == b.row && a.place < b.place);
}

/// Two positions that are compared.
struct pair_of_positions {
  std::int64_t first, second;
};
/// The `number`-th pair of mirror images in runs of `size`.
__device__ pair_of_positions mirrored(std::int64_t number, std::int64_t size) {
  const std::int64_t run = number / (size / 2) * size, offset = number % (size / 2);
  return {run + offset, run + size - 1 - offset};
}
/// The `number`-th pair that lies `stride` apart.
__device__ pair_of_positions strided(std::int64_t number, std::int64_t stride) {
  const std::int64_t first = number / stride * 2 * stride + number % stride;
  return {first, first + stride};
}

__device__ void put_in_order(named_place* places, const pair_of_positions& at) {
  const named_place first = places[at.first], second = places[at.second];
  if (!comes_before(second, first)) return;
  places[at.first] = second;
  places[at.second] = first;
}

/// All comparisons that stride / 2 and less apart leave to do; `stride` is at most a chunk.
__device__ void merge_in_chunk(named_place* chunk, std::int64_t stride) {
  for (std::int64_t apart = stride; apart >= 1; apart /= 2) {
    for (std::int64_t number = threadIdx.x; number < chunk_places / 2; number += blockDim.x)
      put_in_order(chunk, strided(number, apart));
    __syncthreads();
  }
}

__device__ void sort_in_chunk(named_place* chunk, std::int64_t size_max) {
  for (std::int64_t size = 2; size <= size_max; size *= 2) {
    for (std::int64_t number = threadIdx.x; number < chunk_places / 2; number += blockDim.x)
      put_in_order(chunk, mirrored(number, size));
    __syncthreads();
    merge_in_chunk(chunk, size / 4);
  }
}

/// Sorts each chunk of `places`: from the beginning, in runs of up to `size_max`, where places are
/// still to be numbered (`numbered` false); otherwise what is left of a merge.
__global__ void sort_chunks(embedding_backward s, std::int64_t count, std::int64_t size_max, bool numbered) {
  __shared__ named_place chunk[chunk_places];
  constexpr std::int64_t none = INT64_MAX;
  for (std::int64_t begin = blockIdx.x * chunk_places; begin < count; begin += gridDim.x * chunk_places) {
    for (std::int64_t k = threadIdx.x; k < chunk_places; k += blockDim.x) {
      const bool inside = begin + k < count;
      const std::int64_t place = inside ? (numbered ? s.places[begin + k] : begin + k) : none;
      chunk[k] = {inside ? s.indices[place] : none, place};
    }
    __syncthreads();
    if (numbered)
      merge_in_chunk(chunk, chunk_places / 2);
    else
      sort_in_chunk(chunk, size_max);
    // Each thread fills the same places of the next chunk: no barrier.
    for (std::int64_t k = threadIdx.x; k < chunk_places && begin + k < count; k += blockDim.x)
      s.places[begin + k] = chunk[k].place;
  }
}

/// One round of comparisons over all places: of mirror images in runs of `size`, or, where that is
/// 0, of those `stride` apart.
__global__ void compare_places(embedding_backward s, std::int64_t count, std::int64_t pairs,
                               std::int64_t size, std::int64_t stride) {
  for (std::int64_t number = thread_number(); number < pairs; number += thread_count()) {
    const pair_of_positions at = size > 0 ? mirrored(number, size) : strided(number, stride);
    if (at.second >= count) continue;
    const std::int64_t first = s.places[at.first], second = s.places[at.second];
    if (!comes_before({s.indices[second], second}, {s.indices[first], first})) continue;
    s.places[at.first] = second;
    s.places[at.second] = first;
  }
}

void sort_places(queue on, const embedding_backward& s, std::int64_t count) {
  std::int64_t padded = 1;
  while (padded < count) padded *= 2;
  const std::int64_t chunks = (count + chunk_places - 1) / chunk_places;
  const std::int64_t blocks = chunks < blocks_max ? chunks : blocks_max;
  launch(on, sort_chunks, blocks, block_threads, s, count, padded < chunk_places ? padded : chunk_places,
         false);
  for (std::int64_t size = 2 * chunk_places; size <= padded; size *= 2) {
    launch(on, compare_places, blocks_for(padded / 2), block_threads, s, count, padded / 2, size, 0);
    for (std::int64_t stride = size / 4; stride >= chunk_places; stride /= 2)
      launch(on, compare_places, blocks_for(padded / 2), block_threads, s, count, padded / 2, 0, stride);
    launch(on, sort_chunks, blocks, block_threads, s, count, 0, true);
  }
}

/// For each position that begins a row, and each value: one thread adds the gradients of that row's
/// places in their order.
template <class Number>
__global__ void sum_rows(embedding_backward s, std::int64_t count) {
  const auto& g = s.geometry;
  const auto* const dy = static_cast<const Number*>(s.dy);
  for (std::int64_t i = thread_number(); i < count * g.dim; i += thread_count()) {
    const std::int64_t begin = i / g.dim, d = i % g.dim;
    const std::int64_t row = s.indices[s.places[begin]];
    if (begin > 0 && s.indices[s.places[begin - 1]] == row) continue;
    double sum = 0.0;
    for (std::int64_t at = begin; at < count && s.indices[s.places[at]] == row; ++at)
      sum += static_cast<double>(widened(dy[start_of(g, s.places[at]) + d * g.fields]));
    s.dtable[row * g.dim + d] = static_cast<float>(sum);
  }
}

} // namespace

void run(queue on, const read_indices& what) {
  launch(on, read_indices_each, blocks_for(what.count), block_threads, what);
}

void run(queue on, precision stored, const embedding_forward& what) {
  const std::int64_t count = what.batch * what.geometry.fields * what.geometry.dim;
  with_number(stored, [&]<class Number>(Number) {
    launch(on, embedding_each<Number>, blocks_for(count), block_threads, what, count);
  });
}

void run(queue on, precision stored, const embedding_backward& what) {
  const std::int64_t count = what.batch * what.geometry.fields;
  run(on, fill{what.dtable, what.rows * what.geometry.dim, 0.0F});
  if (count == 0) return;
  sort_places(on, what, count);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, sum_rows<Number>, blocks_for(count * what.geometry.dim), block_threads, what, count);
  });
}

} // namespace dlrun::kernels::cuda
