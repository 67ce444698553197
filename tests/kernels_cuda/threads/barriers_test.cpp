// Each kernel that has a barrier, once, at sizes with which its loops turn several times: a barrier
// that is missing is a race. What they compute is tested elsewhere.
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

/// Blocks of 256 threads cost a change of threads each at every barrier, so there are few.
class barriers : public testing::Test {
protected:
  float* floats(std::int64_t count) { return there_.put(some_floats(count, ++seed_, true)); }
  float* room(std::int64_t count) { return there_.room<float>(count); }

  on_device there_{0};

private:
  unsigned seed_ = 0;
};

TEST_F(barriers, of_transpose) {
  float* const to = room(70 * 45);
  there_.run(transpose{1, 70, 45, floats(70 * 45), to});
}

TEST_F(barriers, of_sum_columns) { there_.run(sum_columns{300, 5, floats(1500), room(5)}); }

TEST_F(barriers, of_batch_statistics_and_their_way_back) {
  const std::int64_t rows = 300, channels = 3;
  float *const x = floats(rows * channels), *const dx = room(rows * channels), *const of = room(5 * channels);
  there_.run(batch_statistics{rows, channels, 1e-5F, x, of, of + channels, of + 2 * channels});
  there_.run(batch_norm_backward{rows, channels, of, of + 2 * channels, floats(channels), x,
                                 floats(rows * channels), of + 3 * channels, of + 4 * channels, dx});
}

TEST_F(barriers, of_group_norm_there_and_back) {
  const std::int64_t batch = 2, pixels = 20, channels = 4, groups = 2, count = batch * pixels * channels;
  const cpu::group_geometry geometry{.pixels = pixels, .channels = channels, .groups = groups};
  float *const x = floats(count), *const y = room(count), *const weight = floats(channels);
  float *const mean = room(batch * groups), *const deviation = room(batch * groups),
               *const of = room(2 * channels);
  there_.run(group_norm_forward{geometry, batch, x, weight, floats(channels), y, mean, deviation});
  there_.run(group_norm_backward{geometry, batch, x, mean, deviation, weight, floats(count), of,
                                 of + channels, room(count)});
}

TEST_F(barriers, of_softmax_there_and_back) {
  float *const x = floats(3 * 300), *const y = room(3 * 300);
  there_.run(softmax_forward{3, 300, x, y});
  there_.run(softmax_backward{3, 300, y, floats(3 * 300), room(3 * 300)});
}

TEST_F(barriers, of_losses) {
  const std::int64_t rows = 40, classes = 70;
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), 5);
  double* const loss = there_.room<double>(1);
  there_.run(cross_entropy{rows, classes, 0.1, nullptr, floats(rows * classes), there_.put(labels), loss,
                           room(rows * classes)});
  there_.run(distance{distance_kind::mse, rows, classes, 1.0, nullptr, 0, floats(rows * classes),
                      floats(rows * classes), loss, room(rows * classes)});
}

/// More places than a block sorts at once.
TEST_F(barriers, of_the_way_back_of_embeddings) {
  const std::int64_t count = 1500;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i * 7 % 90);
  there_.run(embedding_backward{{1, 2},
                                count,
                                90,
                                there_.put(indices),
                                floats(count * 2),
                                there_.room<std::int64_t>(count),
                                room(90 * 2)});
}

} // namespace
} // namespace dlrun::kernels::cuda
