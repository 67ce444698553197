#include "kernels/cpu/permute.hpp"
#include "kernels/cpu/strided.hpp"
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

class moves : public on_each_device {};
DLRUN_ON_EACH_DEVICE(moves);

struct matrices {
  std::int64_t batch, rows, columns;
};

TEST_P(moves, transpose_turns_each_matrix) {
  for (const auto& m : std::vector<matrices>{{0, 3, 4},
                                             {1, 1, 1},
                                             {1, 1, 70},
                                             {5, 33, 1},
                                             {2, 32, 32},
                                             {3, 31, 65},
                                             {1, 100, 129},
                                             {3, 4, 0}}) {
    on_device there(GetParam());
    const std::int64_t size = m.batch * m.rows * m.columns;
    const auto from = some_floats(size, 1);
    std::vector<float> wanted(from.size());
    cpu::transpose(m.batch, m.rows, m.columns, from, wanted);
    float* const to = there.room<float>(size);
    there.run(transpose{m.batch, m.rows, m.columns, there.put(from), to});
    expect_same_bits(there.get(to, size), wanted);
  }
}

TEST_P(moves, transpose_takes_more_tiles_than_blocks_of_a_grid) {
  on_device there(GetParam());
  const std::int64_t batch = 2200;
  const auto from = some_floats(batch * 6, 1);
  std::vector<float> wanted(from.size());
  cpu::transpose(batch, 2, 3, from, wanted);
  float* const to = there.room<float>(batch * 6);
  there.run(transpose{batch, 2, 3, there.put(from), to});
  expect_same_bits(there.get(to, batch * 6), wanted);
}

struct columns_of_rows {
  std::int64_t rows;
  cpu::column_run run;
};
const std::vector<columns_of_rows> runs{{0, {3, 1, 1}},  {1, {1, 0, 1}},   {7, {5, 0, 5}},
                                        {9, {10, 7, 3}}, {300, {4, 1, 2}}, {2, {700, 1, 600}}};

TEST_P(moves, read_columns_takes_the_run_of_each_row) {
  for (const auto& [rows, run] : runs) {
    on_device there(GetParam());
    const auto from = some_floats(rows * run.width, 1);
    std::vector<float> wanted(static_cast<std::size_t>(rows * run.count));
    cpu::read_columns(run, from, wanted);
    float* const to = there.room<float>(rows * run.count);
    there.run(read_columns{rows, run, there.put(from), to});
    expect_same_bits(there.get(to, rows * run.count), wanted);
  }
}

TEST_P(moves, write_columns_leaves_all_other_columns_as_they_are) {
  for (const auto& [rows, run] : runs) {
    on_device there(GetParam());
    const auto from = some_floats(rows * run.count, 1);
    auto wanted = some_floats(rows * run.width, 2);
    float* const to = there.put(wanted);
    cpu::write_columns(run, from, wanted);
    there.run(write_columns{rows, run, there.put(from), to});
    expect_same_bits(there.get(to, rows * run.width), wanted);
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
