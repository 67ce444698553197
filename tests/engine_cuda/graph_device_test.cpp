// That steps which are gathered into graphs stay in order with all else that a device is asked for.
#include "engine/cuda/graph_device.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

using kernels::cuda::add_floats;
using kernels::cuda::copy;
using kernels::cuda::fill;
using kernels::cuda::lane;
using kernels::cuda::stand_in_device;

/// A device whose passes are graphs, the one behind it, and vectors of `count` floats.
struct passing_device {
  static constexpr std::int64_t count = 4;
  static constexpr std::size_t bytes = count * sizeof(float);

  explicit passing_device(std::uint64_t seed = 1)
      : passing_device(std::make_unique<stand_in_device>(kernels::cuda::stand_in_settings{.seed = seed})) {}
  explicit passing_device(std::unique_ptr<stand_in_device> inner)
      : behind{*inner}
      , there{std::move(inner)} {}

  float* room() { return static_cast<float*>(there.allocate(bytes).value()); }
  float first(const float* from) {
    float value = 0;
    there.download(lane::compute, from, &value, sizeof(value));
    EXPECT_TRUE(there.finish(lane::compute));
    return value;
  }

  stand_in_device& behind;
  graph_device there;
};

/// Doubles what lies at `to`, twice.
void quadruple(graph_device& on, float* to) {
  for (int i = 0; i < 2; ++i) on.run(lane::compute, add_floats{to, to, passing_device::count});
}

TEST(graph_device, copies_and_steps_keep_their_order) {
  passing_device device;
  float* const to = device.room();
  for (int pass = 0; pass < 3; ++pass) {
    const graph_device::pass under_way{device.there};
    std::vector<float> from(passing_device::count, 1.0F), later(passing_device::count, 5.0F);
    float between = 0, end = 0;
    device.there.upload(lane::compute, from.data(), to, passing_device::bytes);
    quadruple(device.there, to);
    device.there.download(lane::compute, to, &between, sizeof(between));
    quadruple(device.there, to);
    device.there.upload(lane::compute, later.data(), to, passing_device::bytes);
    quadruple(device.there, to);
    device.there.download(lane::compute, to, &end, sizeof(end));
    ASSERT_TRUE(device.there.finish(lane::compute));
    EXPECT_EQ(between, 4) << pass;
    EXPECT_EQ(end, 20) << pass;
  }
  EXPECT_EQ(device.behind.counts().graphs, 3 * 3 - 1) << "all runs are alike, and the first is none";
}

/// What is recorded is behind the steps before it, and what is waited for is before those behind.
TEST(graph_device, events_and_steps_keep_their_order) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    passing_device device{seed};
    float *const a = device.room(), *const b = device.room(), *const other = device.room();
    const auto made = std::move(device.there.make_event().value()),
               taken = std::move(device.there.make_event().value());
    for (int pass = 0; pass < 3; ++pass) {
      const graph_device::pass under_way{device.there};
      device.there.run(lane::compute, fill{a, passing_device::count, 1.0F});
      quadruple(device.there, a);
      device.there.record(lane::compute, *made);
      quadruple(device.there, other);
      device.there.wait(lane::side, *made);
      device.there.run(lane::side, copy{a, b, passing_device::count});
      device.there.record(lane::side, *taken);
      quadruple(device.there, other);
      device.there.wait(lane::compute, *taken);
      device.there.run(lane::compute, fill{a, passing_device::count, 9.0F});
      quadruple(device.there, a);
      ASSERT_TRUE(device.there.finish(*taken));
      EXPECT_EQ(device.first(b), 4) << "seed " << seed << ", pass " << pass;
      EXPECT_EQ(device.first(a), 36) << "seed " << seed << ", pass " << pass;
    }
  }
}

/// Else it would do nothing while the host waits for something else.
TEST(graph_device, has_all_steps_when_the_host_waits) {
  for (const bool for_event : {false, true}) {
    passing_device device;
    float* const a = device.room();
    const auto never = std::move(device.there.make_event().value());
    const graph_device::pass under_way{device.there};
    quadruple(device.there, a);
    EXPECT_EQ(device.behind.counts().single_steps, 0);
    ASSERT_TRUE(for_event ? device.there.finish(*never) : device.there.finish(lane::side));
    EXPECT_EQ(device.behind.counts().single_steps, 2);
  }
}

TEST(graph_device, a_run_has_at_most_so_many_steps_and_none_is_lost) {
  constexpr auto most = step_graphs::steps_max;
  passing_device device;
  float *const to = device.room(), *const one = device.room();
  for (int pass = 0; pass < 3; ++pass) {
    const graph_device::pass under_way{device.there};
    device.there.run(lane::compute, fill{to, passing_device::count, 0.0F});
    device.there.run(lane::compute, fill{one, passing_device::count, 1.0F});
    for (std::size_t i = 0; i < 2 * most; ++i)
      device.there.run(lane::compute, add_floats{one, to, passing_device::count});
    EXPECT_EQ(device.first(to), 2 * most);
  }
  EXPECT_EQ(device.behind.counts().graphs, 2 * 3) << "two whole runs and the rest";
}

TEST(graph_device, gathers_nothing_beside_a_pass_or_in_the_other_lane) {
  passing_device device;
  float* const to = device.room();
  for (int i = 0; i < 5; ++i) {
    device.there.run(lane::compute, fill{to, passing_device::count, 1.0F});
    quadruple(device.there, to);
  }
  EXPECT_EQ(device.first(to), 4);
  {
    const graph_device::pass under_way{device.there};
    for (int i = 0; i < 5; ++i) device.there.run(lane::side, fill{to, passing_device::count, 2.0F});
    EXPECT_EQ(device.behind.counts().single_steps, 20);
  }
  EXPECT_TRUE(device.there.finish(lane::side));
  EXPECT_EQ(device.behind.counts().graphs, 0);
}

TEST(graph_device, graphs_of_others_and_steps_keep_their_order) {
  passing_device device;
  float* const to = device.room();
  const std::vector<kernels::cuda::step> doubled{add_floats{to, to, passing_device::count}};
  const auto other = device.there.make_graph(lane::compute, doubled).value();
  const graph_device::pass under_way{device.there};
  device.there.run(lane::compute, fill{to, passing_device::count, 1.0F});
  device.there.run(*other);
  device.there.run(lane::compute, add_floats{to, to, passing_device::count});
  device.there.run(*other);
  EXPECT_EQ(device.first(to), 8);
}

TEST(graph_device, a_pass_that_ends_early_leaves_its_steps_in_the_lane) {
  passing_device device;
  float* const to = device.room();
  {
    const graph_device::pass under_way{device.there};
    device.there.run(lane::compute, fill{to, passing_device::count, 1.0F});
    quadruple(device.there, to);
  }
  EXPECT_EQ(device.behind.counts().single_steps, 3);
  EXPECT_EQ(device.first(to), 4);
}

} // namespace
} // namespace dlrun::engine
