// Which runs of steps become graphs, and that no graph runs with the arguments of another run.
#include "engine/cuda/step_graphs.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

using kernels::cuda::add_floats;
using kernels::cuda::fill;
using kernels::cuda::lane;
using kernels::cuda::stand_in_device;
using kernels::cuda::step;
using ::testing::HasSubstr;

class step_graphs_test : public ::testing::Test {
protected:
  static constexpr std::int64_t count = 8;

  explicit step_graphs_test(const kernels::cuda::stand_in_faults& faults = {})
      : device{{.faults = faults}} {}

  float* room() {
    return static_cast<float*>(device.allocate(static_cast<std::size_t>(count) * sizeof(float)).value());
  }
  /// Both steps write `to`.
  std::vector<step> twice(float value, float* to, std::int64_t numbers = count) {
    return {fill{to, numbers, value}, add_floats{to, to, numbers}};
  }
  std::vector<float> got(const float* from) {
    std::vector<float> values(count);
    device.download(lane::compute, from, values.data(), values.size() * sizeof(float));
    EXPECT_TRUE(device.finish(lane::compute));
    return values;
  }
  static std::vector<float> all(float value) { return std::vector<float>(count, value); }

  stand_in_device device;
};

TEST_F(step_graphs_test, a_run_is_a_graph_from_the_second_time_on) {
  step_graphs graphs{device};
  float* const to = room();
  for (int i = 0; i < 4; ++i) {
    device.run(lane::compute, fill{to, count, -1.0F});
    graphs.run(twice(1, to));
    EXPECT_EQ(got(to), all(2));
    EXPECT_EQ(device.counts().graphs, i);
  }
  EXPECT_EQ(device.counts().single_steps, 4 + 2);
  EXPECT_EQ(graphs.refused(), "");
}

/// A graph has the arguments of the run that it was made of: each of these differs in one.
TEST_F(step_graphs_test, a_run_with_another_argument_is_another_run) {
  step_graphs graphs{device};
  float *const to = room(), *const other = room();
  for (int i = 0; i < 3; ++i) {
    graphs.run(twice(1, to));
    EXPECT_EQ(got(to), all(2)) << i;
    graphs.run(twice(3, to));
    EXPECT_EQ(got(to), all(6)) << "another value, " << i;
    graphs.run(twice(3, other));
    EXPECT_EQ(got(other), all(6)) << "another address, " << i;
    EXPECT_EQ(got(to), all(6));
    graphs.run(twice(5, to, count / 2));
    auto half = all(6);
    std::fill_n(half.begin(), count / 2, 10.0F);
    EXPECT_EQ(got(to), half) << "another size, " << i;
    graphs.run(std::vector<step>{fill{to, count, 1.0F}, add_floats{other, to, count}});
    EXPECT_EQ(got(to), all(7)) << "another address in a later step, " << i;
    graphs.run(std::vector<step>{fill{to, count, 1.0F}, add_floats{other, to, count}, fill{other, 1, 9.0F}});
    EXPECT_EQ(got(other)[0], 9) << "one step more, " << i;
    device.run(lane::compute, fill{other, count, 0.0F});
  }
  EXPECT_EQ(device.counts().graphs, 2 * 6);
}

TEST_F(step_graphs_test, one_step_is_no_graph) {
  step_graphs graphs{device};
  float* const to = room();
  for (int i = 0; i < 4; ++i) graphs.run(std::vector<step>{fill{to, count, 1.0F}});
  graphs.run({});
  EXPECT_EQ(device.counts().graphs, 0);
  EXPECT_EQ(got(to), all(1));
}

/// In place of those that have not come for longest, even where one of them still waits in the
/// lane.
TEST_F(step_graphs_test, as_many_runs_are_remembered_as_it_says) {
  step_graphs graphs{device};
  float* const to = room();
  const auto run = [&](std::size_t number) { graphs.run(twice(static_cast<float>(number), to)); };
  for (std::size_t i = 0; i < step_graphs::runs_max; ++i) run(i);
  for (std::size_t i = 0; i < step_graphs::runs_max; ++i) run(i);
  EXPECT_EQ(device.counts().graphs, step_graphs::runs_max);
  run(step_graphs::runs_max); // in place of number 0
  EXPECT_EQ(device.counts().graphs, step_graphs::runs_max);
  run(1);
  EXPECT_EQ(device.counts().graphs, step_graphs::runs_max + 1);
  run(0); // in place of number 2
  run(2);
  EXPECT_EQ(device.counts().graphs, step_graphs::runs_max + 1);
  EXPECT_EQ(got(to), all(4));
}

class refused_graphs : public step_graphs_test {
protected:
  refused_graphs()
      : step_graphs_test{{.no_graph_from = 2}} {}
};

TEST_F(refused_graphs, are_run_step_by_step_and_not_asked_for_again) {
  step_graphs graphs{device};
  float *const to = room(), *const other = room();
  for (int i = 0; i < 3; ++i) {
    graphs.run(twice(1, to));
    graphs.run(twice(2, other));
    EXPECT_EQ(got(to), all(2));
    EXPECT_EQ(got(other), all(4));
  }
  EXPECT_EQ(device.counts().graphs, 1) << "of the first, before the second was refused";
  EXPECT_THAT(graphs.refused(), HasSubstr("injected"));
}

class graphs_that_fail : public step_graphs_test {
protected:
  graphs_that_fail()
      : step_graphs_test{{.fails_at_step = 4}} {}
};

TEST_F(graphs_that_fail, are_an_error_of_the_device_and_can_be_destroyed) {
  step_graphs graphs{device};
  float* const to = room();
  graphs.run(twice(1, to));
  graphs.run(twice(1, to)); // its second step is the fourth of all
  const auto done = device.finish(lane::compute);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::system);
}

} // namespace
} // namespace dlrun::engine
