// Steps on a device that stores activations as bf16: each gives what the same step gives of the
// same numbers as floats, rounded once.
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/strided.hpp"
#include "kernels/cuda/bf16.hpp"
#include "tests/kernels_cuda/same_on_all.hpp"

#include <bit>
#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

float rounded(float value) { return widened(rounded_to_bf16(value)); }

floats rounded(floats values) {
  for (float& value : values) value = rounded(value);
  return values;
}

/// Numbers that bf16 has, odd ones among them.
floats narrow_floats(std::int64_t count, unsigned seed) { return rounded(some_floats(count, seed)); }
floats ordinary_narrow_floats(std::int64_t count, unsigned seed) {
  return rounded(ordinary_floats(count, seed));
}

TEST(bf16, is_the_nearest_of_8_bits_and_the_even_one_of_two) {
  const float unit = std::ldexp(1.0F, -7); // of the last bit that is left of 1
  EXPECT_EQ(rounded(1 + unit), 1 + unit);
  EXPECT_EQ(rounded(1 + 0.49F * unit), 1);
  EXPECT_EQ(rounded(1 + 0.51F * unit), 1 + unit);
  EXPECT_EQ(rounded(1 + 0.5F * unit), 1);
  EXPECT_EQ(rounded(-(1 + 1.5F * unit)), -(1 + 2 * unit));
  EXPECT_EQ(rounded(2 - std::ldexp(1.0F, -20)), 2) << "into the next exponent";
  EXPECT_EQ(rounded(3.4e38F), INFINITY) << "beyond the largest";
  for (const float same : {0.0F, -0.0F, INFINITY, -INFINITY, 3.0F, std::ldexp(1.0F, -133)})
    EXPECT_EQ(bits_of(rounded(same)), bits_of(same));
  for (const std::uint32_t bits : {0x7FC00000U, 0x7F800001U, 0xFF80FFFFU, 0x7FFFFFFFU})
    EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(bits)))) << bits;
}

/// A device of one precision, with activations on it that are given and read as floats.
class stored_there {
public:
  stored_there(int variant, precision stored)
      : there(test_device(variant, stored))
      , stored_(stored) {}

  /// `values` are numbers that bf16 has.
  void* put(const floats& values) {
    if (stored_ != precision::bf16) return there.put(values);
    std::vector<std::uint16_t> bits;
    for (const float value : values) bits.push_back(rounded_to_bf16(value).bits);
    return there.put(bits);
  }
  void* room(std::int64_t count) {
    if (stored_ != precision::bf16) return there.room<float>(count);
    return there.room<std::uint16_t>(count);
  }
  /// What lies there, rounded where it is floats.
  floats get(const void* from, std::int64_t count) {
    if (stored_ != precision::bf16) return rounded(there.get(static_cast<const float*>(from), count));
    floats values;
    for (const auto bits : there.get(static_cast<const std::uint16_t*>(from), count))
      values.push_back(widened(bf16{bits}));
    return values;
  }

  on_device there;

private:
  precision stored_;
};

/// Fails unless compute(on) gives the same on a device of either precision, in any order of
/// threads.
template <class Compute>
void expect_rounded_once(Compute compute) {
  stored_there in_floats(0, precision::fp32);
  const floats wanted = compute(in_floats);
  for (int variant = 0; variant < device_variants(); ++variant) {
    SCOPED_TRACE(variant);
    stored_there narrow(variant, precision::bf16);
    expect_same_bits(compute(narrow), wanted);
  }
}

TEST(bf16, of_floats_and_back_is_one_rounding) {
  for (const auto size : awkward_sizes()) {
    stored_there on(0, precision::bf16);
    const auto values = some_floats(size, 1);
    void* const narrowed = on.room(size);
    float* const back = on.there.room<float>(size);
    on.there.run(narrow{on.there.put(values), narrowed, size});
    expect_same_bits(on.get(narrowed, size), rounded(values));
    on.there.run(widen{narrowed, back, size});
    expect_same_bits(on.there.get(back, size), rounded(values));
  }
}

TEST(bf16, elements_are_rounded_once) {
  for (const auto size : awkward_sizes()) {
    SCOPED_TRACE(size);
    const auto a = narrow_floats(size, 1), b = narrow_floats(size, 2);
    const auto each = [&](auto step_of) {
      expect_rounded_once([&](stored_there& on) {
        void *const x = on.put(a), *const y = on.put(b), *const to = on.room(size);
        on.there.run(step_of(x, y, to));
        return on.get(to, size);
      });
    };
    each([&](void*, void*, void* to) { return clear_activations{to, size}; });
    each([&](void* x, void*, void* to) { return copy_activations{x, to, size}; });
    each([&](void* x, void* y, void* to) { return add{x, y, to, size}; });
    each([&](void* x, void* y, void* to) { return multiply{x, y, to, size}; });
    each([&](void* x, void*, void* to) { return relu_forward{x, to, size}; });
    each([&](void* x, void* y, void* to) { return relu_backward{x, y, to, size}; });
    expect_rounded_once([&](stored_there& on) {
      void *const x = on.put(a), *const to = on.room(size);
      on.there.run(
          dropout{on.there.put(std::vector<slot_key>{{7, 3, 4}}), 5, 0.4F, 1.0F / 0.6F, x, to, size});
      return on.get(to, size);
    });
    for (const auto kind : {cpu::activation::gelu, cpu::activation::tanh, cpu::activation::leaky_relu}) {
      each([&](void* x, void*, void* to) { return activate_forward{kind, 0.1F, x, to, size}; });
      each([&](void* x, void* y, void* to) { return activate_backward{kind, 0.1F, x, x, y, to, size}; });
    }
  }
}

TEST(bf16, vectors_may_begin_at_any_number) {
  const std::int64_t size = 1025;
  const auto a = narrow_floats(size + 3, 1);
  for (const std::int64_t shift : {1, 2, 3}) {
    stored_there on(0, precision::bf16);
    auto* const x = static_cast<std::uint16_t*>(on.put(a));
    void* const to = on.room(size);
    on.there.run(copy_activations{x + shift, to, size});
    expect_same_bits(on.get(to, size), {a.begin() + shift, a.begin() + shift + size});
  }
}

TEST(bf16, moves_change_no_number_but_what_was_a_float) {
  const std::int64_t batch = 3, rows = 31, columns = 65, size = batch * rows * columns;
  const auto values = narrow_floats(size, 1);
  expect_rounded_once([&](stored_there& on) {
    void* const to = on.room(size);
    on.there.run(transpose{batch, rows, columns, on.put(values), to});
    return on.get(to, size);
  });
  expect_rounded_once([&](stored_there& on) { // of floats that bf16 does not have
    void* const to = on.room(size);
    on.there.run(transpose_narrowing{batch, rows, columns, on.there.put(some_floats(size, 2)), to});
    return on.get(to, size);
  });
  expect_rounded_once([&](stored_there& on) {
    float* const to = on.there.room<float>(size);
    on.there.run(transpose_widening{batch, rows, columns, on.put(values), to});
    return on.there.get(to, size);
  });
  const cpu::column_run run{65, 7, 30};
  expect_rounded_once([&](stored_there& on) {
    void *const from = on.put(values), *const part = on.room(93 * 30), *const to = on.put(values);
    on.there.run(read_columns{93, run, from, part});
    on.there.run(write_columns{93, {65, 20, 30}, part, to});
    return joined({on.get(part, 93 * 30), on.get(to, size)});
  });
}

TEST(bf16, sums_of_columns_are_of_floats_and_rows_are_added_to_them) {
  for (const auto& m : std::vector<matrix>{{1, 1}, {513, 3}, {129, 8}, {7, 300}}) {
    const auto values = ordinary_narrow_floats(m.rows * m.columns, 1);
    expect_rounded_once([&](stored_there& on) {
      float* const sums = on.there.room<float>(m.columns);
      void* const from = on.put(values);
      on.there.run(sum_columns{m.rows, m.columns, from, sums});
      void* const other = on.put(values);
      on.there.run(add_row{m.rows, m.columns, on.there.put(ordinary_floats(m.columns, 2)), from});
      on.there.run(add_row{m.rows, m.columns, on.there.put(ordinary_floats(m.columns, 3)), other, true});
      return joined({on.there.get(sums, m.columns), on.get(from, m.rows * m.columns),
                     on.get(other, m.rows * m.columns)});
    });
  }
}

TEST(bf16, pools_are_rounded_once) {
  const cpu::pool_geometry g{9, 7, 9, 3, 4, 3, 2, 0};
  const std::int64_t batch = 5, in = batch * 7 * 9 * 9, out = batch * 3 * 4 * 9;
  const auto x = narrow_floats(in, 1), dy = narrow_floats(out, 2);
  expect_rounded_once([&](stored_there& on) {
    void *const y = on.room(out), *const dx = on.room(in);
    auto* const winner = on.there.room<std::int32_t>(out);
    on.there.run(max_pool_forward{g, batch, on.put(x), y, winner});
    on.there.run(max_pool_backward{g, batch, winner, on.put(dy), dx});
    return joined({on.get(y, out), on.get(dx, in)});
  });
  const auto rows = cpu::strided_windows(7, 3, 3, 2, 0, true),
             columns = cpu::strided_windows(9, 4, 3, 2, 0, true);
  expect_rounded_once([&](stored_there& on) {
    void *const y = on.room(out), *const dx = on.room(in);
    const pool_windows windows{9, 7, 9, on.there.put(rows), on.there.put(columns), 3, 4};
    on.there.run(average_pool_forward{windows, batch, on.put(x), y});
    on.there.run(average_pool_backward{windows, batch, on.put(dy), dx});
    return joined({on.get(y, out), on.get(dx, in)});
  });
}

TEST(bf16, statistics_and_gradients_of_norms_are_floats_of_numbers_that_are_rounded_once) {
  const std::int64_t rows = 130, channels = 9, size = rows * channels;
  const auto x = ordinary_narrow_floats(size, 1), dy = ordinary_narrow_floats(size, 2);
  const auto weight = ordinary_floats(channels, 3), bias = ordinary_floats(channels, 4);
  expect_rounded_once([&](stored_there& on) {
    float* const s = on.there.room<float>(5 * channels);
    float *const w = on.there.put(weight), *const b = on.there.put(bias);
    void *const in = on.put(x), *const y = on.room(size), *const dx = on.room(size);
    on.there.run(batch_statistics{rows, channels, 1e-5F, in, s, s + channels, s + 2 * channels});
    on.there.run(normalise{rows, channels, s, s + 2 * channels, w, b, in, y});
    on.there.run(batch_norm_backward{rows, channels, s, s + 2 * channels, w, in, on.put(dy), s + 3 * channels,
                                     s + 4 * channels, dx});
    return joined({on.there.get(s, 5 * channels), on.get(y, size), on.get(dx, size)});
  });
  const cpu::group_geometry g{13, 9, 3, 1e-5F};
  expect_rounded_once([&](stored_there& on) {
    float* const s = on.there.room<float>(60 + 2 * channels);
    float *const w = on.there.put(weight), *const b = on.there.put(bias);
    void *const in = on.put(x), *const y = on.room(size), *const dx = on.room(size);
    on.there.run(group_norm_forward{g, 10, in, w, b, y, s, s + 30});
    on.there.run(group_norm_backward{g, 10, in, s, s + 30, w, on.put(dy), s + 60, s + 60 + channels, dx});
    return joined({on.there.get(s, 60 + 2 * channels), on.get(y, size), on.get(dx, size)});
  });
}

TEST(bf16, rows_of_tables_are_rounded_once_and_their_gradients_are_summed_as_floats) {
  struct table_use {
    cpu::embedding_geometry geometry;
    std::int64_t batch, rows;
  };
  for (const auto& use : std::vector<table_use>{
           {{1, 1}, 0, 4}, {{1, 1}, 1, 1}, {{3, 5}, 7, 4}, {{2, 3}, 1031, 90}, {{5, 2}, 205, 1001}}) {
    const std::int64_t places = use.batch * use.geometry.fields, size = places * use.geometry.dim;
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < places; ++i) indices.push_back(i * 7 % use.rows);
    const auto table = some_floats(use.rows * use.geometry.dim, 1);
    floats y(static_cast<std::size_t>(size)), dtable(table.size());
    cpu::embedding(use.geometry, indices, table, y);
    const auto dy = ordinary_narrow_floats(size, 2);
    cpu::embedding_backward(use.geometry, indices, dy, dtable);
    for (int variant = 0; variant < device_variants(); ++variant) {
      stored_there on(variant, precision::bf16);
      const auto* const of = on.there.put(indices);
      void* const to = on.room(size);
      on.there.run(embedding_forward{use.geometry, use.batch, of, on.there.put(table), to});
      expect_same_bits(on.get(to, size), rounded(y));
      float* const gradient = on.there.room<float>(std::ssize(table));
      on.there.run(embedding_backward{use.geometry, use.batch, use.rows, of, on.put(dy),
                                      on.there.room<std::int64_t>(places), gradient});
      expect_same_bits(on.there.get(gradient, std::ssize(table)), dtable);
    }
  }
}

/// The gradients of one row, of which the 1 is lost beside 1e20, but not beside -1e20 + 1e20.
TEST(bf16, gradients_of_one_row_are_added_in_the_order_of_their_places) {
  const float large = rounded(1e20F);
  const floats dy{large, 1.0F, -large, 3.0F, large, -large, 2.0F};
  stored_there on(0, precision::bf16);
  float* const to = on.there.room<float>(2);
  const auto* const indices = on.there.put(std::vector<std::int64_t>{1, 1, 1, 1, 0, 0, 0});
  on.there.run(embedding_backward{{1, 1}, 7, 2, indices, on.put(dy), on.there.room<std::int64_t>(7), to});
  expect_same_bits(on.there.get(to, 2), {2.0F, 3.0F});
}

TEST(bf16, columns_of_floats_stay_floats) {
  for (const std::int64_t rows : {0, 1, 333}) {
    const auto from = some_floats(rows * 5, 1);
    floats wanted(static_cast<std::size_t>(rows * 3));
    cpu::read_columns({5, 1, 3}, from, wanted);
    stored_there on(0, precision::bf16);
    float* const to = on.there.room<float>(rows * 3);
    on.there.run(read_float_columns{rows, {5, 1, 3}, on.there.put(from), to});
    expect_same_bits(on.there.get(to, rows * 3), wanted);
  }
}

TEST(bf16, softmax_is_rounded_once_also_in_place) {
  for (const auto& m : std::vector<matrix>{{300, 1}, {33, 17}, {2, 1000}}) {
    const auto x = ordinary_narrow_floats(m.rows * m.columns, 1),
               dy = ordinary_narrow_floats(m.rows * m.columns, 2);
    for (const bool in_place : {false, true})
      expect_rounded_once([&](stored_there& on) {
        const auto count = m.rows * m.columns;
        void *const from = on.put(x), *const to = in_place ? from : on.room(count);
        on.there.run(softmax_forward{m.rows, m.columns, from, to});
        return on.get(to, count);
      });
    expect_rounded_once([&](stored_there& on) {
      void* const gradient = on.put(dy);
      on.there.run(softmax_backward{m.rows, m.columns, on.put(x), gradient, gradient});
      return on.get(gradient, m.rows * m.columns);
    });
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
