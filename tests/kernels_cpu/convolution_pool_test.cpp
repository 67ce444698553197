#include "kernels/cpu/convolution_pool.hpp"

#include "tests/kernels_cpu/drawn.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace dlrun::kernels::cpu {
namespace {

using numbers = std::vector<float>;

/// What both ways of computing it give.
struct passes {
  numbers y, dw, db, dx;

  passes(std::int64_t y_size, const numbers& w, const numbers& b, const numbers& x)
      : y(static_cast<std::size_t>(y_size), NAN)
      , dw(w.size(), NAN)
      , db(b.size(), NAN)
      , dx(x.size(), NAN) {}
};

struct geometry_case {
  convolution_geometry convolution;
  pool_geometry pool;
  std::int64_t batch;
  numbers x, w, b, dy;

  geometry_case(std::int64_t n, std::int64_t in, std::int64_t side, std::int64_t out, bool bias, bool of_relu)
      : convolution{in, side, side, out, side, side, 3, 1, 1, bias}
      , pool{out, side, side, side / 2, side / 2, 2, 2, 0, of_relu}
      , batch(n)
      , x(drawn(n * side * side * in, 1))
      , w(drawn(out * in * 9, 2))
      , b(drawn(out, 3))
      , dy(drawn(n * (side / 2) * (side / 2) * out, 4)) {}

  passes together(bool input_gradient, bool own_avx2_code = false) const {
    passes p(static_cast<std::int64_t>(dy.size()), w, b, x);
    onednn context;
    context.own_avx2_code = own_avx2_code;
    convolution_pool both(context, convolution, pool, input_gradient);
    both.forward(batch, x.data(), w.data(), b.data(), p.y);
    both.backward(batch, x.data(), w.data(), dy, p.dw.data(), p.db.data(),
                  input_gradient ? p.dx.data() : nullptr);
    return p;
  }

  passes apart() const {
    passes p(static_cast<std::int64_t>(dy.size()), w, b, x);
    numbers between(
        static_cast<std::size_t>(batch * convolution.height * convolution.width * convolution.out_channels));
    std::vector<std::int32_t> winner(dy.size());
    onednn context;
    kernels::cpu::convolution first(context, convolution, true);
    first.set_weights(w.data());
    first.forward(batch, x.data(), b.data(), between.data());
    max_pool(pool, batch, between, p.y, winner);
    max_pool_backward(pool, batch, winner, dy, between);
    first.backward(batch, x.data(), between.data(), p.dw.data(), p.db.data(), p.dx.data());
    return p;
  }
};

/// Up to the rounding of sums over `terms` products.
void expect_close(const numbers& actual, const numbers& expected, std::size_t terms, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  const double allowed = 1e-6 * std::sqrt(static_cast<double>(terms));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], allowed * std::max(1.0F, std::abs(expected[i])))
        << what << "[" << i << "]";
}

TEST(convolution_pool, equals_convolution_and_then_the_pool) {
  for (const std::int64_t batch : {1, 7, 75}) // the last: several slices, of which one is smaller
    for (const bool of_relu : {false, true}) {
      const geometry_case c(batch, 3, 20, 16, true, of_relu);
      const auto together = c.together(true), apart = c.apart();
      expect_close(together.y, apart.y, 27, "y");
      expect_close(together.dw, apart.dw, 100 * c.dy.size() / 16, "dw");
      expect_close(together.db, apart.db, 100 * c.dy.size() / 16, "db");
      expect_close(together.dx, apart.dx, 144, "dx");
    }
}

TEST(convolution_pool, equals_them_where_channels_are_computed_in_blocks) {
  for (const bool own_avx2_code : {false, true})
    for (const std::int64_t in : {1, 16, 32, 48})
      for (const std::int64_t out : {32, 48, 24}) {
        const geometry_case c(19, in, 12, out, true, true);
        const auto together = c.together(in > 1, own_avx2_code), apart = c.apart();
        const auto terms = static_cast<std::size_t>(9 * in);
        expect_close(together.y, apart.y, terms, "y");
        expect_close(together.dw, apart.dw, 100 * c.dy.size() / 16, "dw");
        expect_close(together.db, apart.db, 100 * c.dy.size() / 16, "db");
        if (in > 1) expect_close(together.dx, apart.dx, static_cast<std::size_t>(9 * out), "dx");
      }
}

TEST(convolution_pool, leaves_alone_what_nobody_asks_for) {
  const geometry_case c(75, 1, 20, 16, false, true);
  const auto together = c.together(false), apart = c.apart();
  expect_close(together.y, apart.y, 9, "y");
  expect_close(together.dw, apart.dw, 100 * c.dy.size() / 16, "dw");
  for (const auto* values : {&together.db, &together.dx})
    for (const float value : *values) ASSERT_TRUE(std::isnan(value)) << "was written";
}

TEST(convolution_pool, gives_the_same_bits_whatever_was_computed_before) {
  const geometry_case c(75, 3, 20, 16, true, true);
  onednn context;
  convolution_pool both(context, c.convolution, c.pool, true);
  const auto run = [&](std::int64_t batch) {
    passes p(static_cast<std::int64_t>(c.dy.size()) / c.batch * batch, c.w, c.b, c.x);
    both.forward(batch, c.x.data(), c.w.data(), c.b.data(), p.y);
    both.backward(batch, c.x.data(), c.w.data(), std::span(c.dy).first(p.y.size()), p.dw.data(), p.db.data(),
                  p.dx.data());
    return p;
  };
  const auto expected = run(75);
  for (const std::int64_t batch : {1, 40, 3}) (void)run(batch);
  const auto again = run(75);
  EXPECT_EQ(again.y, expected.y);
  EXPECT_EQ(again.dw, expected.dw);
  EXPECT_EQ(again.db, expected.db);
  EXPECT_EQ(again.dx, expected.dx);
}

} // namespace
} // namespace dlrun::kernels::cpu
