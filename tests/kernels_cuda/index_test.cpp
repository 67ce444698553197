#include "kernels/cpu/embedding.hpp"
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

class rows_of_tables : public on_each_device {};
DLRUN_ON_EACH_DEVICE(rows_of_tables);

constexpr std::int64_t none_bad = INT64_MAX;

struct read {
  std::vector<std::int64_t> rows;
  std::int64_t first_bad;
};
read read_on(int variant, const std::vector<float>& values, std::int64_t rows, std::int64_t first_bad) {
  on_device there(variant);
  const auto count = std::ssize(values);
  auto* const to = there.room<std::int64_t>(count);
  auto* const bad = there.put(std::vector<std::int64_t>{first_bad});
  there.run(read_indices{there.put(values), count, rows, to, bad});
  return {there.get(to, count), there.get(bad, 1)[0]};
}

TEST_P(rows_of_tables, whole_numbers_below_the_number_of_rows_are_read) {
  const auto got = read_on(GetParam(), {0.0F, -0.0F, 1.0F, 16777215.0F}, 1 << 24, none_bad);
  EXPECT_EQ(got.rows, (std::vector<std::int64_t>{0, 0, 1, 16777215}));
  EXPECT_EQ(got.first_bad, none_bad);
  EXPECT_EQ(read_on(GetParam(), {}, 3, 5).first_bad, 5);
}

TEST_P(rows_of_tables, what_is_no_row_is_read_as_0_and_named) {
  for (const float bad : {NAN, INFINITY, -INFINITY, 0.5F, 1e-30F, -1.0F, 3.0F, 1e10F, 1e30F}) {
    const auto got = read_on(GetParam(), {2.0F, bad, 1.0F}, 3, none_bad);
    EXPECT_EQ(got.rows, (std::vector<std::int64_t>{2, 0, 1})) << bad;
    EXPECT_EQ(got.first_bad, 1) << bad;
  }
}

TEST_P(rows_of_tables, the_first_bad_place_is_named_whichever_thread_finds_it) {
  std::vector<float> values(3000, 1.0F);
  for (const std::size_t place : {2999U, 1234U, 700U, 711U}) values[place] = -1.0F;
  EXPECT_EQ(read_on(GetParam(), values, 2, none_bad).first_bad, 700);
  EXPECT_EQ(read_on(GetParam(), values, 2, 20).first_bad, 20); // of an earlier call
}

struct table_use {
  cpu::embedding_geometry geometry;
  std::int64_t batch, rows;
};

/// Few rows, so that many places name the same one; or as many as there are places.
const std::vector<table_use> uses{{{1, 1}, 0, 4},       {{1, 1}, 1, 1},    {{3, 5}, 7, 4},
                                  {{1, 8}, 600, 3},     {{2, 3}, 512, 90}, {{5, 2}, 205, 7},
                                  {{26, 1}, 200, 1000}, {{1, 2}, 2500, 1}};

std::vector<std::int64_t> some_rows(const table_use& use) {
  std::mt19937 random(5);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(use.batch * use.geometry.fields));
  for (auto& index : indices) index = static_cast<std::int64_t>(random()) % use.rows;
  return indices;
}

TEST_P(rows_of_tables, embedding_has_the_bits_of_its_twin) {
  for (const auto& use : uses) {
    const auto indices = some_rows(use);
    const auto table = some_floats(use.rows * use.geometry.dim, 1);
    const std::int64_t size = std::ssize(indices) * use.geometry.dim;
    std::vector<float> y(static_cast<std::size_t>(size));
    cpu::embedding(use.geometry, indices, table, y);

    on_device there(GetParam());
    float* const to = there.room<float>(size);
    there.run(embedding_forward{use.geometry, use.batch, there.put(indices), there.put(table), to});
    expect_same_bits(there.get(to, size), y);
  }
}

TEST_P(rows_of_tables, the_gradient_of_a_table_has_the_bits_of_its_twin) {
  for (const auto& use : uses) {
    const auto indices = some_rows(use);
    const auto dy = some_floats(std::ssize(indices) * use.geometry.dim, 1, true);
    const std::int64_t size = use.rows * use.geometry.dim;
    std::vector<float> dtable(static_cast<std::size_t>(size));
    cpu::embedding_backward(use.geometry, indices, dy, dtable);

    on_device there(GetParam());
    float* const to = there.room<float>(size);
    auto* const places = there.room<std::int64_t>(std::ssize(indices));
    there.run(
        embedding_backward{use.geometry, use.batch, use.rows, there.put(indices), there.put(dy), places, to});
    expect_same_bits(there.get(to, size), dtable);
  }
}

/// Sums of floats of like size round nothing in double, in any order. These do.
TEST_P(rows_of_tables, gradients_of_one_row_are_added_in_the_order_of_their_places) {
  const std::vector<float> dy{1e20F, 1.0F, -1e20F, 3.0F, 1e20F, -1e20F, 2.0F};
  on_device there(GetParam());
  float* const to = there.room<float>(2);
  auto* const places = there.room<std::int64_t>(7);
  const auto* const indices = there.put(std::vector<std::int64_t>{1, 1, 1, 1, 0, 0, 0});
  there.run(embedding_backward{{1, 1}, 7, 2, indices, there.put(dy), places, to});
  expect_same_bits(there.get(to, 2), {2.0F, 3.0F}); // the 1 is lost beside 1e20
}

} // namespace
} // namespace dlrun::kernels::cuda
