/// What a device is asked to compute, one step at a time.
///
/// Pointers are to memory of the device; those to `void`, unless a line says otherwise, to
/// activations, which are floats, or bf16 on a device that was opened so: then a step computes with
/// them as floats and rounds once what it writes. Matrices are row-major and images have their
/// channels innermost, as in kernels/cpu, whose functions of the same names say what each step
/// computes: a step names its twin where it has one. Where a twin works in place, so does the step.
/// A count may be 0. Sums have an order that depends on the sizes alone. Equal steps compute the
/// same from what lies at their addresses.
#pragma once

#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/average_pool.hpp"
#include "kernels/cpu/convolution_geometry.hpp"
#include "kernels/cpu/distance.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/group_norm.hpp"
#include "kernels/cpu/max_pool.hpp"
#include "kernels/cpu/strided.hpp"
#include <dlrun/batch.hpp>
#include <dlrun/random.hpp>

#include <cstdint>
#include <variant>

namespace dlrun::kernels::cuda {

// ---- element by element

/// to[i] = value.
struct fill {
  float* to;
  std::int64_t count;
  float value;
  bool operator==(const fill&) const = default;
};
/// to[i] = from[i]. Disjoint.
struct copy {
  const float* from;
  float* to;
  std::int64_t count;
  bool operator==(const copy&) const = default;
};
/// sum[i] += part[i].
struct add_floats {
  const float* part;
  float* sum;
  std::int64_t count;
  bool operator==(const add_floats&) const = default;
};
/// to[i] = 0.
struct clear_activations {
  void* to;
  std::int64_t count;
  bool operator==(const clear_activations&) const = default;
};
/// to[i] = from[i]. Disjoint.
struct copy_activations {
  const void* from;
  void* to;
  std::int64_t count;
  bool operator==(const copy_activations&) const = default;
};
/// Floats as activations.
struct narrow {
  const float* from;
  void* to;
  std::int64_t count;
  bool operator==(const narrow&) const = default;
};
/// Activations as floats.
struct widen {
  const void* from;
  float* to;
  std::int64_t count;
  bool operator==(const widen&) const = default;
};
/// to[i] = a[i] + b[i]; cpu::add, to the bit.
struct add {
  const void *a, *b;
  void* to;
  std::int64_t count;
  bool operator==(const add&) const = default;
};
/// to[i] = a[i] * b[i]; cpu::multiply, to the bit.
struct multiply {
  const void *a, *b;
  void* to;
  std::int64_t count;
  bool operator==(const multiply&) const = default;
};
/// cpu::relu, to the bit.
struct relu_forward {
  const void* x;
  void* y;
  std::int64_t count;
  bool operator==(const relu_forward&) const = default;
};
/// cpu::relu_backward, to the bit.
struct relu_backward {
  const void *y, *dy;
  void* dx;
  std::int64_t count;
  bool operator==(const relu_backward&) const = default;
};
/// cpu::activate.
struct activate_forward {
  cpu::activation kind;
  float slope;
  const void* x;
  void* y;
  std::int64_t count;
  bool operator==(const activate_forward&) const = default;
};
/// cpu::activate_backward.
struct activate_backward {
  cpu::activation kind;
  float slope;
  const void *x, *y, *dy;
  void* dx;
  std::int64_t count;
  bool operator==(const activate_backward&) const = default;
};
/// to[i] = from[i] * m[i], where m[i] is 0 if number i of the layer's stream,
/// random_stream::uniform() of word i % 4 of words(i / 4), is below p, else `scale`. The stream is
/// that of random_purpose::dropout, *key and `layer` (dlrun::pass::random), with what lies at `key`
/// when the step runs. Forward and backward are the same; to the bit what the layer dropout does.
struct dropout {
  const slot_key* key; ///< memory of the device
  std::uint32_t layer;
  float p, scale;
  const void* from;
  void* to;
  std::int64_t count;
  bool operator==(const dropout&) const = default;
};

// ---- moves

/// cpu::transpose.
struct transpose {
  std::int64_t batch, rows, columns;
  const void* from;
  void* to;
  bool operator==(const transpose&) const = default;
};
/// The same, of floats that become activations.
struct transpose_narrowing {
  std::int64_t batch, rows, columns;
  const float* from;
  void* to;
  bool operator==(const transpose_narrowing&) const = default;
};
/// The same, of activations that become floats.
struct transpose_widening {
  std::int64_t batch, rows, columns;
  const void* from;
  float* to;
  bool operator==(const transpose_widening&) const = default;
};
/// cpu::read_columns of `rows` rows.
struct read_columns {
  std::int64_t rows;
  cpu::column_run run;
  const void* from;
  void* to;
  bool operator==(const read_columns&) const = default;
};
/// cpu::read_columns of `rows` rows of floats, whatever activations are.
struct read_float_columns {
  std::int64_t rows;
  cpu::column_run run;
  const float* from;
  float* to;
  bool operator==(const read_float_columns&) const = default;
};
/// cpu::write_columns of `rows` rows.
struct write_columns {
  std::int64_t rows;
  cpu::column_run run;
  const void* from;
  void* to;
  bool operator==(const write_columns&) const = default;
};
/// cpu::sum_columns of a matrix (rows, columns); sums in double, in another order.
struct sum_columns {
  std::int64_t rows, columns;
  const void* from;
  float* sums;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const sum_columns&) const = default;
};
/// cpu::add_row: adds `row` to each row of a matrix (rows, columns). With `relu`, cpu::relu of the
/// sums, to the bit.
struct add_row {
  std::int64_t rows, columns;
  const float* row;
  void* to;
  bool relu = false;
  bool operator==(const add_row&) const = default;
};

// ---- pools

/// cpu::max_pool, to the bit; `of_relu` and `block` are not set.
struct max_pool_forward {
  cpu::pool_geometry geometry;
  std::int64_t batch;
  const void* x;
  void* y;
  std::int32_t* winner; ///< one for each number of y
  bool operator==(const max_pool_forward&) const = default;
};
/// cpu::max_pool_backward, to the bit: a thread for each pixel of dx adds what its windows give it.
struct max_pool_backward {
  cpu::pool_geometry geometry;
  std::int64_t batch;
  const std::int32_t* winner;
  const void* dy;
  void* dx;
  bool operator==(const max_pool_backward&) const = default;
};
/// Windows of an average pool, in memory of the device.
struct pool_windows {
  std::int64_t channels, height, width; ///< of an input record
  const cpu::axis_window *rows, *columns;
  std::int64_t row_count, column_count;
  bool operator==(const pool_windows&) const = default;
};
/// cpu::average_pool, to the bit.
struct average_pool_forward {
  pool_windows windows;
  std::int64_t batch;
  const void* x;
  void* y;
  bool operator==(const average_pool_forward&) const = default;
};
/// cpu::average_pool_backward, to the bit.
struct average_pool_backward {
  pool_windows windows;
  std::int64_t batch;
  const void* dy;
  void* dx;
  bool operator==(const average_pool_backward&) const = default;
};

// ---- normalisation

/// cpu::batch_statistics of x (rows, channels).
struct batch_statistics {
  std::int64_t rows, channels;
  float eps;
  const void* x;
  float *mean, *unbiased_variance, *inverse_deviation;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const batch_statistics&) const = default;
};
/// cpu::inverse_deviation.
struct inverse_deviation {
  std::int64_t channels;
  float eps;
  const float* variance;
  float* to;
  bool operator==(const inverse_deviation&) const = default;
};
/// cpu::normalise; `weight` and `bias` may be null.
struct normalise {
  std::int64_t rows, channels;
  const float *mean, *inverse_deviation, *weight, *bias;
  const void* x;
  void* y;
  bool operator==(const normalise&) const = default;
};
/// cpu::batch_norm_backward; `weight`, `dweight`, `dbias` and `dx` may be null.
struct batch_norm_backward {
  std::int64_t rows, channels;
  const float *mean, *inverse_deviation, *weight;
  const void *x, *dy;
  float *dweight, *dbias;
  void* dx;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const batch_norm_backward&) const = default;
};
/// cpu::group_norm; `weight` and `bias` may be null.
struct group_norm_forward {
  cpu::group_geometry geometry;
  std::int64_t batch;
  const void* x;
  const float *weight, *bias;
  void* y;
  float *mean, *inverse_deviation;
  bool operator==(const group_norm_forward&) const = default;
};
/// cpu::group_norm_backward; `weight`, `dweight`, `dbias` and `dx` may be null.
struct group_norm_backward {
  cpu::group_geometry geometry;
  std::int64_t batch;
  const void* x;
  const float *mean, *inverse_deviation, *weight;
  const void* dy;
  float *dweight, *dbias;
  void* dx;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const group_norm_backward&) const = default;
};
/// cpu::softmax of (rows, width).
struct softmax_forward {
  std::int64_t rows, width;
  const void* x;
  void* y;
  bool operator==(const softmax_forward&) const = default;
};
/// cpu::softmax_backward.
struct softmax_backward {
  std::int64_t rows, width;
  const void *y, *dy;
  void* dx;
  bool operator==(const softmax_backward&) const = default;
};

// ---- rows of tables

/// Numbers of rows from floats: to[i] = values[i], or 0 where that is no whole number from 0 to
/// rows
/// - 1; *first_bad is then the smallest such i, unless it is smaller already.
struct read_indices {
  const float* values;
  std::int64_t count, rows;
  std::int64_t *to, *first_bad;
  bool operator==(const read_indices&) const = default;
};
/// cpu::embedding, to the bit.
struct embedding_forward {
  cpu::embedding_geometry geometry;
  std::int64_t batch;
  const std::int64_t* indices; ///< batch * geometry.fields
  const float* table;
  void* y;
  bool operator==(const embedding_forward&) const = default;
};
/// cpu::embedding_backward of a table of `rows`, to the bit. `places` is room for as many numbers
/// as there are indices.
struct embedding_backward {
  cpu::embedding_geometry geometry;
  std::int64_t batch, rows;
  const std::int64_t* indices;
  const void* dy;
  std::int64_t* places;
  float* dtable;
  bool operator==(const embedding_backward&) const = default;
};

// ---- losses

/// cpu::cross_entropy: *loss is the sum in double. `weight` (classes) and `gradient` may be null.
struct cross_entropy {
  std::int64_t rows, classes;
  double label_smoothing;
  const double* weight;
  const float* scores;
  const std::int32_t* labels;
  double* loss;
  float* gradient;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const cross_entropy&) const = default;
};
using cpu::distance_kind;
/// cpu::bce_with_logits and its like over (rows, width): *loss is the sum in double. `gradient` may
/// be null.
struct distance {
  distance_kind kind;
  std::int64_t rows, width;
  double delta;             ///< of huber
  const double* pos_weight; ///< of bce_with_logits: (pos_weights), or null
  std::int64_t pos_weights; ///< 0, 1 or width
  const float *outputs, *targets;
  double* loss;
  float* gradient;
  double* scratch = nullptr; ///< the device's: scratch.hpp
  bool operator==(const distance&) const = default;
};

// ---- libraries

/// c (m, n) = a b + `row`, where a is (m, k), or (k, m) and transposed, b (k, n), or (n, k) and
/// transposed. `row` (n) may be null. Summed as floats. With bf16, `row` is added to the product
/// when that was rounded, and the sum is rounded again. With `relu`, c is cpu::relu of that: NaN
/// stays NaN.
struct product {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  const void *a, *b;
  const float* row;
  void* c;
  bool c_is_floats = false; ///< whatever activations are; `row` is null then, and there is no relu
  bool relu = false;
  bool operator==(const product&) const = default;
};
/// The three passes of a convolution, as of kernels/cpu/convolution.hpp. Weights and their gradient
/// are (out_channels, kernel_height, kernel, in_channels): channels innermost, other than there.
/// The geometry's `bias` says nothing: biases are steps of their own.
struct convolution {
  enum class pass : std::uint8_t {
    forward,         ///< y from x and w
    backward_data,   ///< x from y and w: dx = the gradient by the input, of dy
    backward_weights ///< w from x and y: dw, of dy
  };
  pass which;
  cpu::convolution_geometry geometry;
  std::int64_t batch;
  void *x, *w, *y; ///< the one that the pass computes is written (=)
  bool operator==(const convolution&) const = default;
};

using step =
    std::variant<fill, copy, add_floats, clear_activations, copy_activations, narrow, widen, add, multiply,
                 relu_forward, relu_backward, activate_forward, activate_backward, dropout, transpose,
                 transpose_narrowing, transpose_widening, read_columns, read_float_columns, write_columns,
                 sum_columns, add_row, max_pool_forward, max_pool_backward, average_pool_forward,
                 average_pool_backward, batch_statistics, inverse_deviation, normalise, batch_norm_backward,
                 group_norm_forward, group_norm_backward, softmax_forward, softmax_backward, read_indices,
                 embedding_forward, embedding_backward, cross_entropy, distance, product, convolution>;

} // namespace dlrun::kernels::cuda
