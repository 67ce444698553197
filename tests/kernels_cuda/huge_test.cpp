#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

class huge_vectors : public on_each_device {};
DLRUN_ON_EACH_DEVICE(huge_vectors);

/// More elements than an int counts, where the device has room for a few vectors of them.
std::int64_t huge_size(device& there) {
  constexpr std::size_t room = std::size_t{40} << 30;
  return there.free_bytes() > room ? (std::int64_t{1} << 31) + 12 : (std::int64_t{1} << 16) + 12;
}

/// A vector of `size` times `value` but for its last elements.
float* filled(on_device& there, std::int64_t size, float value, const std::vector<float>& last) {
  float* const to = there.room<float>(size);
  there.run(fill{to, size, value});
  there.run(copy{there.put(last), to + size - std::ssize(last), std::ssize(last)});
  return to;
}

TEST_P(huge_vectors, are_computed_element_by_element_to_the_last) {
  on_device there(GetParam());
  const std::int64_t size = huge_size(there.get());
  float* const from = filled(there, size, -1.0F, {5.0F, -6.0F, 7.0F});
  float* const to = there.room<float>(size);
  there.run(add{from, from, to, size});
  expect_same_bits(there.get(to + size - 5, 5), {-2.0F, -2.0F, 10.0F, -12.0F, 14.0F});
  there.run(relu_forward{from, to, size});
  expect_same_bits(there.get(to + size - 5, 5), {0.0F, 0.0F, 5.0F, 0.0F, 7.0F});
  expect_same_bits(there.get(to, 3), {0.0F, 0.0F, 0.0F});
}

TEST_P(huge_vectors, have_random_numbers_of_their_own_to_the_last) {
  on_device there(GetParam());
  const std::int64_t size = huge_size(there.get()), count = 40;
  const random_stream stream(7, random_purpose::dropout, 3, 4, 5);
  float* const to = filled(there, size, 1.0F, {});
  there.run(dropout{there.put(std::vector<slot_key>{{7, 3, 4}}), 5, 0.5F, 2.0F, to, to, size});
  std::vector<float> wanted;
  for (std::int64_t i = size - count; i < size; ++i) {
    const auto words = stream.words(static_cast<std::uint64_t>(i / 4));
    wanted.push_back(random_stream::uniform(words[static_cast<std::size_t>(i % 4)]) < 0.5F ? 0.0F : 2.0F);
  }
  expect_same_bits(there.get(to + size - count, count), wanted);
}

TEST_P(huge_vectors, are_moved_to_the_last) {
  on_device there(GetParam());
  const std::int64_t size = huge_size(there.get()), rows = size / 4;
  float* const from = filled(there, size, 1.0F, {2.0F, 3.0F, 4.0F, 5.0F});
  float* const to = there.room<float>(size);
  there.run(transpose{1, rows, 4, from, to});
  for (std::int64_t column = 0; column < 4; ++column)
    expect_same_bits(there.get(to + column * rows + rows - 2, 2), {1.0F, 2.0F + static_cast<float>(column)});
  there.run(read_columns{rows, {4, 1, 2}, from, to});
  expect_same_bits(there.get(to + rows * 2 - 4, 4), {1.0F, 1.0F, 3.0F, 4.0F});
  there.run(write_columns{rows, {4, 2, 2}, to, from});
  expect_same_bits(there.get(from + size - 4, 4), {2.0F, 3.0F, 3.0F, 4.0F});
}

TEST_P(huge_vectors, are_pooled_to_the_last) {
  on_device there(GetParam());
  const std::int64_t size = huge_size(there.get()), images = size / 4;
  float* const x = filled(there, size, 1.0F, {2.0F, 3.0F, 8.0F, 5.0F});
  float *const y = there.room<float>(images), *const dx = there.room<float>(size);
  auto* const winner = there.room<std::int32_t>(images);
  const cpu::pool_geometry geometry{1, 2, 2, 1, 1, 2, 2, 0};
  there.run(max_pool_forward{geometry, images, x, y, winner});
  expect_same_bits(there.get(y + images - 2, 2), {1.0F, 8.0F});
  there.run(max_pool_backward{geometry, images, winner, y, dx});
  expect_same_bits(there.get(dx + size - 5, 5), {0.0F, 0.0F, 0.0F, 8.0F, 0.0F});
  const auto* const axis = there.put(cpu::adaptive_windows(2, 1));
  const pool_windows windows{1, 2, 2, axis, axis, 1, 1};
  there.run(average_pool_forward{windows, images, x, y});
  expect_same_bits(there.get(y + images - 2, 2), {1.0F, 4.5F});
  there.run(average_pool_backward{windows, images, y, dx});
  expect_same_bits(there.get(dx + size - 5, 5), {0.25F, 1.125F, 1.125F, 1.125F, 1.125F});
}

TEST_P(huge_vectors, are_rows_of_tables_to_the_last) {
  on_device there(GetParam());
  const std::int64_t dim = 1024, batch = huge_size(there.get()) / dim + 1;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch), 0);
  rows.back() = 1;
  const auto table = some_floats(2 * dim, 1);
  float* const y = there.room<float>(batch * dim);
  there.run(embedding_forward{{1, dim}, batch, there.put(rows), there.put(table), y});
  const std::vector<float> first(table.begin(), table.begin() + dim),
      second(table.begin() + dim, table.end());
  expect_same_bits(there.get(y, dim), first);
  expect_same_bits(there.get(y + (batch - 1) * dim, dim), second);
}

} // namespace
} // namespace dlrun::kernels::cuda
