#include "kernels/cpu/batch_norm.hpp"
#include "kernels/cpu/group_norm.hpp"
#include "tests/kernels_cuda/same_on_all.hpp"

namespace dlrun::kernels::cuda {
namespace {

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Floats as weights and variances have them: not near 0.
floats positive_floats(std::int64_t count, unsigned seed) {
  floats values = ordinary_floats(count, seed);
  for (float& value : values) value = 0.1F + std::abs(value);
  return values;
}

// ---- batches

/// About a tile and a block, many of one and few of the other.
const std::vector<matrix>& awkward_batches() {
  static const std::vector<matrix> all{{2, 1},   {2, 8},    {3, 9},   {7, 2},     {33, 33}, {5, 64},
                                       {129, 8}, {1000, 1}, {513, 3}, {5000, 17}, {3, 3000}};
  return all;
}

/// Mean, unbiased variance and inverse deviation.
floats statistics_of(const matrix& m, float eps, const floats& x) {
  return same_on_all([&](on_device& there) {
    float* const out = there.room<float>(3 * m.columns);
    there.run(
        batch_statistics{m.rows, m.columns, eps, there.put(x), out, out + m.columns, out + 2 * m.columns});
    return there.get(out, 3 * m.columns);
  });
}

floats wanted_statistics(const matrix& m, float eps, const floats& x) {
  floats mean(size(m.columns)), variance(mean), deviation(mean);
  cpu::batch_statistics(m.rows, eps, x, {mean, variance, deviation});
  return joined({mean, variance, deviation});
}

TEST(batch_statistics, are_what_the_twin_takes_up_to_the_order) {
  for (const auto& m : awkward_batches()) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    const auto x = ordinary_floats(m.rows * m.columns, 1);
    expect_close(statistics_of(m, 1e-5F, x), wanted_statistics(m, 1e-5F, x), 1e-6);
  }
}

TEST(batch_statistics, hold_where_the_mean_is_far_above_the_spread) {
  const matrix m{1000, 3};
  floats x(3000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10000.0F + (i % 2 == 0 ? 0.5F : -0.5F);
  expect_same_bits(statistics_of(m, 1e-5F, x), wanted_statistics(m, 1e-5F, x));
  floats constant(3000, 7.0F);
  expect_same_bits(statistics_of(m, 1e-3F, constant), wanted_statistics(m, 1e-3F, constant));
}

TEST(batch_statistics, of_a_channel_say_what_is_not_finite_in_it) {
  const matrix m{50, 10};
  floats x = ordinary_floats(500, 1);
  x[13 * 10 + 4] = NAN;
  x[17 * 10 + 9] = INFINITY;
  expect_close(statistics_of(m, 1e-5F, x), wanted_statistics(m, 1e-5F, x), 1e-6);
}

TEST(inverse_deviation, has_the_bits_of_its_twin) {
  for (const auto channels : awkward_sizes()) {
    const auto variance = positive_floats(channels, 1);
    floats wanted(variance.size());
    cpu::inverse_deviation(1e-5F, variance, wanted);
    expect_same_bits(same_on_all([&](on_device& there) {
                       float* const to = there.room<float>(channels);
                       there.run(inverse_deviation{channels, 1e-5F, there.put(variance), to});
                       return there.get(to, channels);
                     }),
                     wanted);
  }
}

/// What a layer may have or lack.
struct parameters {
  floats weight, bias;
};

std::vector<parameters> possible_parameters(std::int64_t channels) {
  const auto weight = ordinary_floats(channels, 11), bias = ordinary_floats(channels, 12);
  return {{{}, {}}, {weight, bias}, {weight, {}}, {{}, bias}};
}

TEST(normalise, has_the_bits_of_its_twin) {
  auto matrices = awkward_batches();
  matrices.push_back({0, 5});
  matrices.push_back({300, 2001}); // more elements than a grid has threads
  for (const auto& m : matrices)
    for (const auto& [weight, bias] : possible_parameters(m.columns)) {
      SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
      const auto mean = ordinary_floats(m.columns, 1), deviation = positive_floats(m.columns, 2);
      const auto x = some_floats(m.rows * m.columns, 3);
      floats wanted(x.size());
      cpu::normalise(mean, deviation, weight, bias, x, wanted);
      on_device there(0);
      float* const at = there.put(x);
      there.run(normalise{m.rows, m.columns, there.put(mean), there.put(deviation),
                          put_or_null(there, weight), put_or_null(there, bias), at, at});
      expect_same_bits(there.get(at, m.rows * m.columns), wanted);
    }
}

/// Which gradients are asked for.
struct wishes {
  bool parameters, dx;
};
constexpr wishes possible_wishes[] = {{true, true}, {true, false}, {false, true}, {false, false}};

TEST(batch_norm_backward, is_what_its_twin_computes) {
  for (const auto& m : awkward_batches())
    for (const auto& [wants_parameters, wants_dx] : possible_wishes) {
      SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns << wants_parameters << wants_dx);
      const auto mean = ordinary_floats(m.columns, 1), deviation = positive_floats(m.columns, 2);
      const auto weight = wants_parameters ? ordinary_floats(m.columns, 3) : floats{};
      const auto x = ordinary_floats(m.rows * m.columns, 4), dy = ordinary_floats(m.rows * m.columns, 5);
      floats dweight(weight.size()), dbias(weight.size()), dx(wants_dx ? x.size() : 0);
      cpu::batch_norm_backward(m.rows, mean, deviation, weight, x, dy, dweight, dbias, dx);
      const auto got = same_on_all([&](on_device& there) {
        float *const dw = room_or_null(there, std::ssize(dweight)),
                     *const db = room_or_null(there, std::ssize(dbias)),
                     *const to = room_or_null(there, std::ssize(dx));
        there.run(batch_norm_backward{m.rows, m.columns, there.put(mean), there.put(deviation),
                                      put_or_null(there, weight), there.put(x), there.put(dy), dw, db, to});
        return joined({get_or_none(there, dw, std::ssize(dweight)), get_or_none(there, db, std::ssize(dbias)),
                       get_or_none(there, to, std::ssize(dx))});
      });
      expect_close(got, joined({dweight, dbias, dx}), 2e-6);
    }
}

// ---- groups

struct group_case {
  cpu::group_geometry geometry; ///< pixels, channels, groups
  std::int64_t batch;
};

/// No record, one number, layers, channels on their own, groups with few and with many threads.
const std::vector<group_case>& awkward_groups() {
  static const std::vector<group_case> all{{{4, 6, 2}, 0},   {{1, 1, 1}, 2},    {{1, 64, 1}, 5},
                                           {{1, 770, 1}, 3}, {{7, 6, 6}, 3},    {{49, 12, 3}, 2},
                                           {{5, 96, 32}, 3}, {{900, 10, 2}, 1}, {{3, 4, 1}, 300}};
  return all;
}

std::int64_t floats_of(const group_case& one) {
  return one.batch * one.geometry.pixels * one.geometry.channels;
}

TEST(group_norm_forward, is_what_its_twin_computes) {
  for (const auto& one : awkward_groups())
    for (const auto& has : possible_parameters(one.geometry.channels)) {
      const auto& g = one.geometry;
      SCOPED_TRACE(testing::Message() << one.batch << " of " << g.pixels << " x " << g.channels);
      const std::int64_t count = floats_of(one), groups = one.batch * g.groups;
      const auto x = ordinary_floats(count, 1);
      floats y(x.size()), mean(size(groups)), deviation(mean);
      cpu::group_norm(g, one.batch, x, has.weight, has.bias, y, mean, deviation);
      const auto got = same_on_all([&](on_device& there) {
        float *const to = there.room<float>(count), *const means = there.room<float>(groups),
                     *const deviations = there.room<float>(groups);
        there.run(group_norm_forward{g, one.batch, there.put(x), put_or_null(there, has.weight),
                                     put_or_null(there, has.bias), to, means, deviations});
        return joined({there.get(to, count), there.get(means, groups), there.get(deviations, groups)});
      });
      expect_close(got, joined({y, mean, deviation}), 2e-6);
    }
}

TEST(group_norm_forward, holds_where_the_mean_is_far_above_the_spread) {
  const cpu::group_geometry g{100, 6, 2};
  floats x(600);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10000.0F + (i % 2 == 0 ? 0.5F : -0.5F);
  floats wanted(600), mean(2), deviation(2);
  cpu::group_norm(g, 1, x, {}, {}, wanted, mean, deviation);
  on_device there(0);
  float* const at = there.put(x);
  there.run(group_norm_forward{g, 1, at, nullptr, nullptr, at, there.room<float>(2), there.room<float>(2)});
  expect_same_bits(there.get(at, 600), wanted);
}

TEST(group_norm_backward, is_what_its_twin_computes) {
  for (const auto& one : awkward_groups())
    for (const auto& [wants_parameters, wants_dx] : possible_wishes) {
      const auto& g = one.geometry;
      SCOPED_TRACE(testing::Message() << one.batch << " of " << g.pixels << " x " << g.channels);
      const std::int64_t count = floats_of(one), groups = one.batch * g.groups;
      const auto mean = ordinary_floats(groups, 1), deviation = positive_floats(groups, 2);
      const auto weight = wants_parameters ? ordinary_floats(g.channels, 3) : floats{};
      const auto x = ordinary_floats(count, 4), dy = ordinary_floats(count, 5);
      floats dweight(weight.size(), 9), dbias(weight.size(), 9), dx(wants_dx ? x.size() : 0);
      const auto got = same_on_all([&](on_device& there) {
        float *const dw = put_or_null(there, dweight), *const db = put_or_null(there, dbias),
                     *const to = put_or_null(there, dx);
        there.run(group_norm_backward{g, one.batch, there.put(x), there.put(mean), there.put(deviation),
                                      put_or_null(there, weight), there.put(dy), dw, db, to});
        return joined({get_or_none(there, dw, std::ssize(dweight)), get_or_none(there, db, std::ssize(dbias)),
                       get_or_none(there, to, std::ssize(dx))});
      });
      cpu::group_norm_backward(g, one.batch, x, mean, deviation, weight, dy, dweight, dbias, dx);
      expect_close(got, joined({dweight, dbias, dx}), 2e-6);
    }
}

} // namespace
} // namespace dlrun::kernels::cuda
